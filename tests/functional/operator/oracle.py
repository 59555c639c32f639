# SPDX-License-Identifier: Apache-2.0
"""The judge of every fault: afterwards the service is as its spec says, and the operator writes no more."""

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

from gearshift.api import names
from gscluster.audit import AuditLog, Write
from tests.functional.operator.test_children import KINDS
from tests.functional.operator.world import Json, Space, until

QUIET_SECONDS = 2.5  # five ticks of the operator
_CHILDREN = {
    "Deployment/chat-router", "NetworkPolicy/chat", "PodDisruptionBudget/chat", "Role/chat-router",
    "RoleBinding/chat-router", "Service/chat-pods", "Service/chat-router", "ServiceAccount/chat-engine",
    "ServiceAccount/chat-router",
}  # fmt: skip
_CONDITIONS = {"Ready": "True", "EnginesReady": "True", "SpecValid": "True", "Reconciling": "False", "Stalled": "False"}


def as_the_spec_says(space: Space, pods: int, layout: str = "TP") -> bool:
    """So many pods and each child exist, all pods serve in the layout, and status says so of this generation.

    Pods that wait for a kubelet get one.
    """
    if len(space.kubelet.running(pods)) != pods:
        return False
    bodies = space.items(*KINDS, "gsvc")
    (service,) = (body for body in bodies if body["kind"] == names.KIND)
    owned = [body for body in bodies if names.LABEL_SERVICE_UID in body["metadata"].get("labels", {})]
    if {body["metadata"]["labels"][names.LABEL_SERVICE_UID] for body in owned} != {service["metadata"]["uid"]}:
        return False
    found = {f"{body['kind']}/{body['metadata']['name']}" for body in owned}
    live = {name.removeprefix("Pod/") for name in found - _CHILDREN}
    return found >= _CHILDREN and len(live) == pods and _told(service, live, layout)


def _told(service: Json, pods: set[str], layout: str) -> bool:
    """Status tells of these pods that they serve, and of nothing that is still to be done."""
    status: Json = service.get("status", {})
    shown = {pod["name"]: (pod["phase"], pod["layout"]) for pod in status.get("pods", [])}
    conditions = {entry["type"]: entry["status"] for entry in status.get("conditions", [])}
    return (
        status.get("observedGeneration") == service["metadata"]["generation"]
        and shown == dict.fromkeys(pods, ("Serving", layout))
        and "transition" not in status
        and conditions == conditions | _CONDITIONS
    )


def writes(log: AuditLog, spaces: Collection[Space]) -> list[Write]:
    """What the operator has written about some namespaces since the mark of ``log``."""
    names_of = {space.name for space in spaces}
    return [write for write in log.writes("gearshift-operator") if write.namespace in names_of]


def settles(spaces: Sequence[Space], desired: Callable[[Space], bool], what: str, seconds: float = 120.0) -> None:
    """``desired`` comes true of each, the operator's writes about them end, and then it still is true."""
    log = AuditLog(spaces[0].cluster.audit_log)
    log.mark()
    for space in spaces:
        until(partial(desired, space), f"{space.name}: {what}", seconds)
    stops_writing(spaces, log, seconds)
    for space in spaces:
        assert desired(space), f"{space.name}: not any more: {what}"


def stops_writing(spaces: Sequence[Space], log: AuditLog, seconds: float = 120.0) -> None:
    """Within ``seconds`` there are `QUIET_SECONDS` in which the operator writes nothing about the namespaces."""
    deadline = time.monotonic() + seconds
    count, since = len(writes(log, spaces)), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        found = writes(log, spaces)
        if len(found) != count:
            count, since = len(found), time.monotonic()
        assert time.monotonic() < deadline, f"the operator goes on writing: {found[-8:]}"
        time.sleep(0.1)
