# SPDX-License-Identifier: Apache-2.0
"""What the operator keeps of pods and nodes: a few fields of objects that are much larger."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from gearshift.api import names
from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import Layout, Role

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodRecord:
    """One engine pod as the API server has it."""

    namespace: str
    name: str
    uid: str
    service_uid: str
    ordinal: int
    revision: str
    version: int  # resourceVersion
    created_at: float
    role: Role  # at start
    layout: Layout  # at start
    layouts: tuple[Layout, ...]
    accelerators: int = 0
    node: str = ""
    address: str = ""
    ready: bool = False
    ready_since: float = 0.0  # when readiness last changed
    deleting: bool = False
    ended: bool = False  # phase Failed or Succeeded


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One node."""

    name: str
    ready: bool
    since: float  # when readiness last changed
    out_of_service: bool  # a human said that it is gone
    gpu: str = ""  # product, as NVIDIA's feature discovery labels it
    version: int = field(default=0, compare=False)  # resourceVersion, which heartbeats change without saying anything


def pod_record(body: Json) -> PodRecord | None:
    """Projection of a pod; None when it is not one that the operator made."""
    metadata = body["metadata"]
    labels = metadata.get("labels") or {}
    uid = labels.get(names.LABEL_SERVICE_UID)
    config = _config(body)
    if uid is None or config is None or labels.get(names.LABEL_COMPONENT) != names.COMPONENT_ENGINE:
        return None
    ordinal = metadata["name"].rsplit("-", 1)[-1]
    if not ordinal.isdigit():
        return None
    status = body.get("status") or {}
    ready, since = _condition(status, "Ready")
    return PodRecord(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        service_uid=uid,
        ordinal=int(ordinal),
        revision=labels.get(names.LABEL_REVISION, ""),
        version=version_of(body),
        created_at=seconds(metadata.get("creationTimestamp")),
        role=config.initial_role,
        layout=config.initial_layout,
        layouts=tuple(config.layouts),
        accelerators=config.accelerators,
        node=(body.get("spec") or {}).get("nodeName") or "",
        address=status.get("podIP") or "",
        ready=ready,
        ready_since=since,
        deleting=metadata.get("deletionTimestamp") is not None,
        ended=status.get("phase") in ("Failed", "Succeeded"),
    )


def node_record(body: Json) -> NodeRecord:
    """Projection of a node."""
    ready, since = _condition(body.get("status") or {}, "Ready")
    taints = (body.get("spec") or {}).get("taints") or []
    out = any(taint.get("key") == "node.kubernetes.io/out-of-service" for taint in taints)
    gpu = (body["metadata"].get("labels") or {}).get("nvidia.com/gpu.product") or ""
    return NodeRecord(body["metadata"]["name"], ready, since, out, gpu, version_of(body))


def version_of(body: Json) -> int:
    """Resource version as the number that it is; 0 when there is none."""
    text = str(body["metadata"].get("resourceVersion") or "0")
    return int(text) if text.isdigit() else 0


def seconds(timestamp: str | None) -> float:
    """Seconds since the epoch of a Kubernetes time; 0 when there is none."""
    if not timestamp:
        return 0.0
    return datetime.fromisoformat(timestamp).astimezone(UTC).timestamp()


def _condition(status: Json, kind: str) -> tuple[bool, float]:
    for condition in status.get("conditions") or []:
        if condition.get("type") == kind:
            return condition.get("status") == "True", seconds(condition.get("lastTransitionTime"))
    return False, 0.0


def _config(body: Json) -> PodConfig | None:
    """What the pod was told at its start."""
    for container in (body.get("spec") or {}).get("initContainers") or []:
        for variable in container.get("env") or []:
            if variable.get("name") == names.ENV_POD_CONFIG:
                try:
                    return PodConfig.model_validate(json.loads(variable.get("value") or ""))
                except (ValueError, ValidationError):
                    return None
    return None
