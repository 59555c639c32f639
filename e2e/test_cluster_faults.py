# SPDX-License-Identifier: Apache-2.0
"""Every fault does what it says while it lasts, pods live through it, and the cluster is whole afterwards."""

from collections.abc import Iterator

import pytest

from gscluster import faults, probes
from gscluster.cluster import Cluster
from gscluster.errors import ClusterError
from gscluster.shell import succeeds
from gscluster.waiting import wait_for

pytestmark = pytest.mark.e2e

NAMESPACE = "probe-faults"


@pytest.fixture(scope="module", autouse=True)
def server(own_cluster: Cluster) -> Iterator[None]:
    """Pod `server` with all GPUs of node-2."""
    own_cluster.kubectl.apply(
        probes.namespace(NAMESPACE), probes.server_pod("server", NAMESPACE, node="node-2", gpus=8)
    )
    own_cluster.kubectl("wait", "--for=condition=Ready", "pod/server", "-n", NAMESPACE, "--timeout=170s")
    yield
    own_cluster.kubectl("delete", "namespace", NAMESPACE)


@pytest.fixture
def url(own_cluster: Cluster) -> str:
    return f"http://{_pod(own_cluster)['status']['podIP']}:{probes.PORT}"


@pytest.fixture(autouse=True)
def whole_and_same_container_afterwards(own_cluster: Cluster, url: str) -> Iterator[None]:
    before = _container(own_cluster)
    yield
    own_cluster.wait_until_usable()
    wait_for(lambda: _answers(url), "the pod to answer", timeout_seconds=180)
    assert _container(own_cluster) == before


def test_a_paused_api_server_does_not_answer(own_cluster: Cluster, url: str) -> None:
    with faults.api_server_paused(own_cluster):
        with pytest.raises(ClusterError, match=r"(?i)timeout|deadline"):
            own_cluster.kubectl("get", "nodes", "--request-timeout=1s")
        assert _answers(url)


def test_an_api_server_that_is_down_refuses_connections(own_cluster: Cluster, url: str) -> None:
    with faults.api_server_down(own_cluster):
        with pytest.raises(ClusterError, match="refused"):
            own_cluster.kubectl("get", "nodes")
        assert _answers(url)


def test_a_node_whose_link_is_cut_is_seen_as_lost(own_cluster: Cluster, url: str) -> None:
    with faults.link_cut(own_cluster, "node-2"):
        assert not _answers(url)
        wait_for(lambda: _is_lost(own_cluster, "node-2"), "node-2 to be seen as lost", timeout_seconds=180)


def test_a_node_whose_kubelet_is_down_is_seen_as_lost_and_keeps_its_gpus(own_cluster: Cluster, url: str) -> None:
    with faults.kubelet_down(own_cluster, "node-2"):
        wait_for(lambda: _is_lost(own_cluster, "node-2"), "node-2 to be seen as lost", timeout_seconds=180)
        assert _answers(url)


def test_containers_outlive_their_containerd(own_cluster: Cluster, url: str) -> None:
    with faults.containerd_down(own_cluster, "node-2"):
        assert own_cluster.processes.stopped() == ["node-2.containerd"]
        assert _answers(url)


def test_a_fault_of_an_unknown_node_is_refused(own_cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="no node 'node-7'; there are: node-1, node-2"):
        faults.cut_link(own_cluster, "node-7")


def _is_lost(cluster: Cluster, node_name: str) -> bool:
    return any(complaint.startswith(f"{node_name}: not Ready") for complaint in cluster.not_ready())


def _answers(url: str) -> bool:
    return succeeds(["curl", "--silent", "--fail", "--max-time", "3", url])


def _pod(cluster: Cluster) -> dict[str, dict[str, object]]:
    pod: dict[str, dict[str, object]] = cluster.kubectl.json("get", "pod", "server", "-n", NAMESPACE)
    return pod


def _container(cluster: Cluster) -> object:
    statuses = _pod(cluster)["status"]["containerStatuses"]
    assert isinstance(statuses, list)
    return statuses[0]["containerID"]
