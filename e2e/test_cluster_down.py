# SPDX-License-Identifier: Apache-2.0
"""The end of a cluster leaves nothing of it, whatever ran in it, and does not touch another cluster."""

import pytest

from gscluster import leaks, lifecycle, probes
from gscluster.cluster import Cluster
from gscluster.settings import ClusterSettings

pytestmark = pytest.mark.e2e

SETTINGS = ClusterSettings(name="second", nodes=1)


def test_down_leaves_nothing_and_spares_the_other_cluster(own_cluster: Cluster) -> None:
    second = lifecycle.up(SETTINGS).cluster
    try:
        second.kubectl.apply(probes.namespace("probe"), probes.server_pod("server", "probe"))
        second.kubectl("wait", "--for=condition=Ready", "pod/server", "-n", "probe", "--timeout=170s")
        assert second.addresses != own_cluster.addresses
        present = leaks.report(SETTINGS.name, second.addresses)
    finally:
        assert lifecycle.down(SETTINGS.name)
    for kind in ("process", "control group", "link", "route", "folder"):
        assert any(line.startswith(kind) for line in present), f"the report does not see a {kind} of a running cluster"
    assert leaks.report(SETTINGS.name, second.addresses) == []
    assert own_cluster.problems() == []


def test_down_of_no_cluster_says_so() -> None:
    assert not lifecycle.down("absent")
