# SPDX-License-Identifier: Apache-2.0
"""A running cluster: usable nodes, found by a second start, and nothing of it in this machine's own network."""

import dataclasses
from pathlib import Path

import pytest

from gscluster import lifecycle
from gscluster.cluster import Cluster
from gscluster.errors import ClusterError

pytestmark = pytest.mark.e2e


def test_nodes_are_ready_with_their_gpus(own_cluster: Cluster) -> None:
    nodes = own_cluster.kubectl.json("get", "nodes")["items"]
    gpus = {node["metadata"]["name"]: node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes}
    assert gpus == {"node-1": "8", "node-2": "8"}
    assert own_cluster.problems() == []


def test_a_second_start_finds_the_running_cluster(own_cluster: Cluster) -> None:
    before = own_cluster.processes.process_id("kube-apiserver")
    result = lifecycle.up(own_cluster.settings)
    assert result.ran_already
    assert result.cluster.processes.process_id("kube-apiserver") == before


def test_a_start_with_other_settings_is_refused_and_changes_nothing(own_cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match=r"runs with other settings \(nodes: 3, not 2\); end it first"):
        lifecycle.up(dataclasses.replace(own_cluster.settings, nodes=3))
    assert own_cluster.problems() == []


def test_no_process_of_it_is_in_the_network_of_this_machine(own_cluster: Cluster) -> None:
    own = Path("/proc/self/ns/net").readlink()
    process_ids = own_cluster.cgroup.process_ids()
    assert own_cluster.processes.process_id("kube-apiserver") in process_ids
    assert [one for one in process_ids if _network_of(one) == own] == []


def _network_of(process_id: int) -> Path | None:
    try:
        return Path(f"/proc/{process_id}/ns/net").readlink()
    except FileNotFoundError:
        return None  # it has ended meanwhile
