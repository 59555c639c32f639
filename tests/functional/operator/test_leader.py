# SPDX-License-Identifier: Apache-2.0
"""Election: one leader, a token that grows, a leader that was away gives up, and an end that is quick and clean."""

import re
import signal
import time
from pathlib import Path

import pytest

from gscluster.audit import AuditLog
from gscluster.fast import FastCluster
from tests.functional.operator.test_transitions import LAYOUTS, history, ordered
from tests.functional.operator.world import OWN_NAMESPACE, Operator, Space, operator, until

pytestmark = pytest.mark.functional


def lease(cluster: FastCluster) -> dict[str, object]:
    """Spec of the lease."""
    spec: dict[str, object] = cluster.kubectl.json("get", "lease", "gearshift-operator", "-n", OWN_NAMESPACE)["spec"]
    return spec


def token(one: Operator) -> int:
    """Fencing token that an operator leads with."""
    found = re.findall(r"leading with fencing token (\d+)", one.log)
    return int(found[-1])


def test_the_second_waits_and_takes_over_at_once_when_the_first_ends(cluster: FastCluster, tmp_path: Path) -> None:
    with operator(cluster, tmp_path, "first") as first:
        second = Operator(cluster, tmp_path, "second").start()
        until(lambda: "identity" in second.log, "the second to run")
        log = AuditLog(cluster.audit_log)
        log.mark()
        time.sleep(3)  # more than one attempt
        assert not second.leads()
        assert "gearshift_operator_leader 0.0" in second.metrics()
        began = time.monotonic()
        assert first.stop() == 0
        assert time.monotonic() - began < 15
        assert lease(cluster)["holderIdentity"] == "" or second.leads()
        until(second.leads, "the second to lead", 120)
        assert token(second) > token(first)
        assert second.stop() == 0


def test_a_leader_that_was_away_ends_and_writes_nothing(cluster: FastCluster, space: Space, tmp_path: Path) -> None:
    first = Operator(cluster, tmp_path, "first").start()
    until(first.leads, "the first to lead", 120)
    first.process.send_signal(signal.SIGSTOP)
    with operator(cluster, tmp_path, "second") as second:
        assert token(second) > token(first)
        space.apply()
        until(space.kubelet.pods, "the second to act")
        first.process.send_signal(signal.SIGCONT)
        assert first.process.wait(timeout=20) == 3
        assert "is held by" in first.log
        assert str(lease(cluster)["holderIdentity"]) in second.log
    assert "PodMissing" not in first.log


def test_a_lease_that_someone_deletes_does_not_let_the_token_shrink(cluster: FastCluster, tmp_path: Path) -> None:
    with operator(cluster, tmp_path) as one:
        before = token(one)
        cluster.kubectl("delete", "lease", "gearshift-operator", "-n", OWN_NAMESPACE)
        until(lambda: lease_or_none(cluster) is not None, "the lease to be made again")
        assert int(str(lease(cluster)["leaseTransitions"])) >= before


def lease_or_none(cluster: FastCluster) -> dict[str, object] | None:
    """Spec of the lease, if there is one."""
    known = cluster.kubectl.json("get", "lease", "-n", OWN_NAMESPACE)["items"]
    return known[0]["spec"] if known else None


def test_bad_settings_name_flag_and_value(cluster: FastCluster, tmp_path: Path) -> None:
    one = Operator(cluster, tmp_path, "bad", prometheus_url="ftp://x").start()
    assert one.process.wait(timeout=20) == 2
    assert "--prometheus-url (GEARSHIFT_OPERATOR_PROMETHEUS_URL) 'ftp://x'" in one.log


def test_an_operator_that_dies_in_the_middle_leaves_the_outcome_to_the_next(
    cluster: FastCluster, space: Space, tmp_path: Path
) -> None:
    with operator(cluster, tmp_path, "first") as first:
        space.apply(**LAYOUTS)
        (sidecar,) = space.serve(1).values()
        sidecar.hold.set()
        space.apply(**ordered("DP"))
        until(lambda: space.is_true("Shifting"), "the transition to run", 120)
        first.stop(signal.SIGKILL)
    sidecar.hold.clear()
    with operator(cluster, tmp_path, "second"):
        (record,) = until(lambda: history(space), "the next leader to tell the outcome", 120)
        assert record["result"] == "Committed"
        until(lambda: not space.is_true("Shifting"), "Shifting to end")
    assert [order.id for order in sidecar.orders] == [record["id"]]
