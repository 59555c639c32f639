# SPDX-License-Identifier: Apache-2.0
"""An operator that is killed between two of its writes: the next one ends in the same place."""

import signal
from pathlib import Path

import pytest

from gearshift.api import names
from gscluster.audit import AuditLog, Write
from gscluster.fast import FastCluster
from tests.functional.operator.test_children import KINDS, SPLIT
from tests.functional.operator.world import Operator, Space, operator, until

pytestmark = pytest.mark.functional

EXPECTED = [
    "Deployment/chat-router", "NetworkPolicy/chat", "Pod/chat-0", "Pod/chat-1", "Pod/chat-2",
    "PodDisruptionBudget/chat", "Role/chat-router", "RoleBinding/chat-router", "Service/chat-pods",
    "Service/chat-router", "ServiceAccount/chat-engine", "ServiceAccount/chat-router",
]  # fmt: skip


def children(space: Space) -> list[str]:
    """Kind and name of everything that the operator made."""
    found = [body for body in space.items(*KINDS) if names.LABEL_SERVICE_UID in body["metadata"].get("labels", {})]
    return sorted(f"{body['kind']}/{body['metadata']['name']}" for body in found)


@pytest.mark.parametrize("count", [1, 10, 13])
def test_killed_after_a_number_of_writes(cluster: FastCluster, space: Space, tmp_path: Path, count: int) -> None:
    log = AuditLog(cluster.audit_log)
    log.mark()

    def writes() -> list[Write]:
        return [write for write in log.writes("gearshift-operator") if write.namespace == space.name]

    first = Operator(cluster, tmp_path, "first").start()
    until(first.leads, "the first to lead", 40)
    space.apply(**SPLIT)
    until(lambda: len(writes()) >= count, f"{count} writes")
    first.stop(signal.SIGKILL)
    with operator(cluster, tmp_path, "second"):
        until(lambda: children(space) == EXPECTED, "all children", 40)
        space.serve(3)
        until(lambda: space.condition("Reconciling").get("status") == "False", "the service to be quiet")
    refused = [write for write in writes() if 400 <= write.status < 500]
    assert refused == []
