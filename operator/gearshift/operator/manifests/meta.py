# SPDX-License-Identifier: Apache-2.0
"""What all children share: names, labels, owner, and the few shapes that every builder needs."""

from dataclasses import dataclass, field
from typing import Any

from gearshift.api import names, process1
from gearshift.api.routerconfig import RouterLimits
from gearshift.api.v1alpha1 import InferenceServiceSpec

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Owner:
    """The InferenceService that children belong to."""

    namespace: str
    name: str
    uid: str
    spec: InferenceServiceSpec


@dataclass(frozen=True, slots=True)
class Installation:
    """What the operator's settings add to every child."""

    image: str  # sidecar, router, Simulated engine
    engine_image_cuda: str | None
    engine_image_cpu: str | None
    image_pull_policy: str
    operator_namespace: str
    operator_account: str  # user name by which sidecars know the operator
    router_replicas: int
    monitoring_namespace: str | None
    router_limits: RouterLimits = field(default_factory=RouterLimits)


def selector(owner: Owner, component: str) -> dict[str, str]:
    """Labels that select one component of a service: immutable facts only."""
    return {names.LABEL_SERVICE_UID: owner.uid, names.LABEL_COMPONENT: component}


def labels(owner: Owner, component: str) -> dict[str, str]:
    """Labels of a child."""
    return {
        names.LABEL_NAME: "gearshift",
        names.LABEL_INSTANCE: owner.name[:63].rstrip("-."),
        names.LABEL_MANAGED_BY: names.FIELD_MANAGER,
        names.LABEL_SERVICE: owner.name[:63].rstrip("-."),
        **selector(owner, component),
    }


def child(owner: Owner, api_version: str, kind: str, name: str, component: str) -> Manifest:
    """An object with metadata only: namespace, name, labels and the owner that takes it along when it is deleted."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "namespace": owner.namespace,
            "name": name,
            "labels": labels(owner, component),
            "ownerReferences": [
                {
                    "apiVersion": names.API_VERSION,
                    "kind": names.KIND,
                    "name": owner.name,
                    "uid": owner.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
    }


def account(namespace: str, name: str) -> str:
    """User name of a ServiceAccount, as TokenReview reports it."""
    return f"system:serviceaccount:{namespace}:{name}"


def python(module: str, *arguments: str) -> list[str]:
    """Command of a container that runs a module which imports `gearshift.api.process1` first."""
    return [*process1.BLOCKED, "python3", "-m", module, *arguments]


def env(name: str, value: str) -> Manifest:
    """A plain environment variable."""
    return {"name": name, "value": value}


def env_field(name: str, path: str) -> Manifest:
    """An environment variable from a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def container_port(name: str, number: int) -> Manifest:
    """A named TCP port of a container."""
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def probe(path: str, port: int, **numbers: int) -> Manifest:
    """An HTTP probe; ``numbers`` are its thresholds and periods."""
    return {"httpGet": {"path": path, "port": port, "scheme": "HTTP"}, **numbers}
