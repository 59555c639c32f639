# SPDX-License-Identifier: Apache-2.0
"""The router's Deployment."""

from typing import Final

from gearshift.api import names
from gearshift.api.routerconfig import RouterConfig
from gearshift.api.vocabulary import ScaleOwner
from gearshift.operator.manifests import meta, security
from gearshift.operator.manifests.meta import Installation, Manifest, Owner

LOST_NODE_SECONDS: Final = 30  # Kubernetes' default of 300 would leave a service without its front door for so long


def build_router(owner: Owner, installation: Installation) -> Manifest:
    """Deployment of the OpenAI front door of a service."""
    name = names.router_name(owner.name)
    deployment = meta.child(owner, "apps/v1", "Deployment", name, names.COMPONENT_ROUTER)
    deployment["spec"] = {
        **_replicas(owner, installation),
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": meta.selector(owner, names.COMPONENT_ROUTER)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": {
            "metadata": {"labels": meta.labels(owner, names.COMPONENT_ROUTER)},
            "spec": {
                "serviceAccountName": name,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "terminationGracePeriodSeconds": 60,
                "securityContext": security.pod_security(),
                "tolerations": [_lost_node(condition) for condition in ("not-ready", "unreachable")],
                "containers": [_container(owner, installation)],
                "volumes": [
                    {"name": "gearshift-tmp", "emptyDir": {}},
                    security.api_token_volume(),
                    security.control_token_volume(),
                ],
            },
        },
    }
    return deployment


def _replicas(owner: Owner, installation: Installation) -> Manifest:
    """Nothing where someone else scales the Deployment: a field that is not applied is not owned."""
    router = owner.spec.router
    if router.scaling.owner is ScaleOwner.EXTERNAL:
        return {}
    return {"replicas": router.replicas or installation.router_replicas}


def router_config(owner: Owner, installation: Installation) -> RouterConfig:
    """What the router is told."""
    return RouterConfig(
        namespace=owner.namespace,
        service=owner.name,
        service_uid=owner.uid,
        model=owner.spec.served_name,
        **installation.router_limits.model_dump(),
    )


def _lost_node(condition: str) -> Manifest:
    """How long the router stays on a node in a condition before it is started elsewhere."""
    return {
        "key": f"node.kubernetes.io/{condition}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": LOST_NODE_SECONDS,
    }


def _container(owner: Owner, installation: Installation) -> Manifest:
    return {
        "name": names.CONTAINER_ROUTER,
        "image": installation.image,
        "imagePullPolicy": installation.image_pull_policy,
        "command": meta.python("gearshift.router"),
        "ports": [
            meta.container_port("http", names.PORT_ROUTER),
            meta.container_port("metrics", names.PORT_ROUTER_METRICS),
        ],
        "env": [
            meta.env(
                names.ENV_ROUTER_CONFIG,
                router_config(owner, installation).model_dump_json(by_alias=True, exclude_none=True),
            ),
            meta.env_field("POD_NAME", "metadata.name"),
            meta.env_field("POD_UID", "metadata.uid"),
            meta.env_field("POD_IP", "status.podIP"),
        ],
        "volumeMounts": [
            {"name": "gearshift-tmp", "mountPath": "/tmp"},  # noqa: S108
            security.api_token_mount(),
            security.control_token_mount(),
        ],
        # /health always answers 200, so that only a router that is slow fails. It is better than none: a dead one ends.
        "readinessProbe": meta.probe(
            "/health", names.PORT_ROUTER, periodSeconds=2, timeoutSeconds=5, failureThreshold=6
        ),
        "livenessProbe": meta.probe("/health", names.PORT_ROUTER_METRICS, periodSeconds=10, timeoutSeconds=5),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": security.container_security(),
    }
