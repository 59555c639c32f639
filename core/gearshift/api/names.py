# SPDX-License-Identifier: Apache-2.0
"""Every label, annotation, field manager, port and path that two processes must agree on, once."""

from typing import Final

GROUP: Final = "gearshift.dev"
VERSION: Final = "v1alpha1"
KIND: Final = "InferenceService"
PLURAL: Final = "inferenceservices"
API_VERSION: Final = f"{GROUP}/{VERSION}"

# Labels. Only immutable facts: a role or a layout is never a label, because a selector could come to depend on it.
LABEL_SERVICE: Final = f"{GROUP}/service"
LABEL_SERVICE_UID: Final = f"{GROUP}/service-uid"
LABEL_REVISION: Final = f"{GROUP}/revision"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
COMPONENT_ENGINE: Final = "engine"
COMPONENT_ROUTER: Final = "router"
COMPONENT_OPERATOR: Final = "operator"

# Annotations that a human sets on an InferenceService.
# policy.actuation Approve: the plan to carry out, as `gearshift.api.approval.Approval` has it: PLAN or PLAN@TIME.
ANNOTATION_APPROVE: Final = f"{GROUP}/approve"
# Any value but "false" and "": no healthy pod is taken out of service, and no pod is added. The value may say why.
ANNOTATION_HOLD: Final = f"{GROUP}/hold"

# Field managers of server-side apply.
FIELD_MANAGER: Final = "gearshift-operator"

# Names of the pod's parts.
CONTAINER_ENGINE: Final = "engine"
CONTAINER_SIDECAR: Final = "sidecar"
CONTAINER_ROUTER: Final = "router"

# Ports.
PORT_ENGINE: Final = 8000  # first resident engine; the n-th listens on PORT_ENGINE + n
PORT_CONTROL: Final = 9400  # sidecar control API (authenticated)
PORT_SIDECAR_METRICS: Final = 9401  # sidecar metrics and probes
PORT_ROUTER: Final = 8080  # OpenAI API of the router
PORT_ROUTER_METRICS: Final = 9402
PORT_OPERATOR_METRICS: Final = 9403
PORT_NIXL: Final = 5600  # NIXL side channel of the first resident engine; the n-th uses PORT_NIXL + 16 * n

# Files inside an engine pod.
RUN_DIR: Final = "/run/gearshift"  # emptyDir shared by the sidecar and the engine container
HOST_SOCKET: Final = f"{RUN_DIR}/host.sock"  # Unix socket of the engine host
STATE_FILE: Final = f"{RUN_DIR}/state.json"  # what a restarted sidecar must remember
TOKEN_FILE: Final = "/var/run/secrets/gearshift/token"  # projected token with TOKEN_AUDIENCE
TOKEN_AUDIENCE: Final = f"{GROUP}/sidecar"

# Environment variables that carry configuration into a process.
ENV_POD_CONFIG: Final = "GEARSHIFT_POD_CONFIG"  # JSON of gearshift.api.podconfig.PodConfig, for the sidecar
ENV_ROUTER_CONFIG: Final = "GEARSHIFT_ROUTER_CONFIG"  # JSON of gearshift.api.routerconfig.RouterConfig


def router_name(service: str) -> str:
    """Name of the router's Deployment, Service and ServiceAccount of an InferenceService."""
    return f"{service}-router"


def pods_service_name(service: str) -> str:
    """Name of the headless Service whose EndpointSlices list the engine pods."""
    return f"{service}-pods"


def engine_account_name(service: str) -> str:
    """Name of the ServiceAccount of the engine pods (only the sidecar container mounts its token)."""
    return f"{service}-engine"


def pod_name(service: str, ordinal: int) -> str:
    """Deterministic name of an engine pod: two creations of the same ordinal collide instead of doubling."""
    return f"{service}-{ordinal}"
