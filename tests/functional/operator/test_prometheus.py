# SPDX-License-Identifier: Apache-2.0
"""Prometheus away, wrong or stale: nothing moves, nothing is written again and again, and all is well once it is."""

from collections.abc import Iterator
from functools import partial

import pytest

from gscluster.audit import AuditLog
from gscluster.fast import FastCluster
from tests.functional.operator.oracle import as_the_spec_says, settles, stops_writing, writes
from tests.functional.operator.prometheus import FAULTS, Prometheus
from tests.functional.operator.test_policy import BUSY, LAYOUTS, QUICK
from tests.functional.operator.world import Operator, Space, operator, until

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("leader")]


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    """It sees load that asks for layout DP."""
    one = Prometheus(BUSY)
    yield one
    one.close()


@pytest.fixture(scope="module")
def leader(
    cluster: FastCluster, prometheus: Prometheus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """An operator that reads it."""
    with operator(cluster, tmp_path_factory.mktemp("operator"), prometheus_url=prometheus.url) as one:
        yield one


@pytest.fixture
def spaces(cluster: FastCluster, prometheus: Prometheus) -> Iterator[dict[str, Space]]:
    """A namespace for each fault, by fault, in which Prometheus has it."""
    found = {fault: Space(cluster, f"prometheus-{fault.lower()}") for fault in FAULTS}
    prometheus.faults = {space.name: fault for fault, space in found.items()}
    yield found
    for space in found.values():
        space.kubelet.close()
        cluster.kubectl("delete", "gsvc", "--all", "-n", space.name, "--wait=false")


def test_answers_that_can_not_be_believed(spaces: dict[str, Space], prometheus: Prometheus) -> None:
    for space in spaces.values():
        space.apply(**LAYOUTS, policy=QUICK)
    sidecars = {fault: space.serve(1)["chat-0"] for fault, space in spaces.items()}
    for space in spaces.values():
        until(partial(unbelieved, space), f"{space.name}: the fault to be told", 120)
    all_spaces = list(spaces.values())
    log = AuditLog(all_spaces[0].cluster.audit_log)
    log.mark()
    stops_writing(all_spaces, log)
    log.mark()
    asked = dict(prometheus.asked)
    until(lambda: all(prometheus.asked[name] > asked[name] for name in asked), "all to be read anew", 120)
    stops_writing(all_spaces, log)
    assert writes(log, all_spaces) == []
    assert [fault for fault, sidecar in sidecars.items() if sidecar.orders] == []
    assert [len(space.kubelet.pods()) for space in all_spaces] == [1] * len(FAULTS)
    prometheus.faults = {}
    settles(all_spaces, lambda one: as_the_spec_says(one, 1, "DP"), "the layout that the load asks for", 60)


def unbelieved(space: Space) -> bool:
    """Status says that the metrics can't be known, and that nothing is decided without them."""
    decision = space.status().get("lastDecision", {})
    return space.condition("MetricsAvailable").get("status") == "False" and decision["reason"] == "MetricsMissing"
