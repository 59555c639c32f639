# SPDX-License-Identifier: Apache-2.0
"""Who reaches whom: pods on two nodes, Services from a pod, from a node and from this machine; nothing gets out."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from gscluster import probes
from gscluster.cluster import Cluster
from gscluster.errors import ClusterError
from gscluster.shell import run
from gscluster.waiting import wait_for

pytestmark = pytest.mark.e2e

NAMESPACE = "probe-network"
CURL = ["curl", "--silent", "--fail", "--max-time", "5"]
FETCH = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=5).read().decode())"
ASK_API_SERVER = """
import json, os, pathlib, ssl, urllib.request
files = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
server = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}/version"
request = urllib.request.Request(server, headers={"Authorization": "Bearer " + (files / "token").read_text()})
context = ssl.create_default_context(cafile=str(files / "ca.crt"))
print(json.load(urllib.request.urlopen(request, timeout=5, context=context))["major"])
"""


@pytest.fixture(scope="module", autouse=True)
def pods(own_cluster: Cluster) -> Iterator[None]:
    """`server-1` on node-1 and `server-2` on node-2 behind Service `servers`."""
    servers = [probes.server_pod(f"server-{number}", NAMESPACE, node=f"node-{number}") for number in (1, 2)]
    own_cluster.kubectl.apply(probes.namespace(NAMESPACE), *servers, probes.service("servers", NAMESPACE))
    own_cluster.kubectl("wait", "--for=condition=Ready", "pod", "--all", "-n", NAMESPACE, "--timeout=170s")
    yield
    own_cluster.kubectl("delete", "namespace", NAMESPACE)


def test_a_pod_reaches_a_pod_on_the_other_node(own_cluster: Cluster) -> None:
    address = _pod_address(own_cluster, "server-2")
    assert _in_pod(own_cluster, FETCH, f"http://{address}:{probes.PORT}") == "server-2"


def test_this_machine_reaches_a_pod(own_cluster: Cluster) -> None:
    address = _pod_address(own_cluster, "server-2")
    assert run([*CURL, f"http://{address}:{probes.PORT}"]) == "server-2"


def test_a_service_answers_from_both_nodes_to_a_pod_a_node_and_this_machine(own_cluster: Cluster) -> None:
    address = own_cluster.kubectl.json("get", "service", "servers", "-n", NAMESPACE)["spec"]["clusterIP"]
    url = f"http://{address}"
    both = {"server-1", "server-2"}
    assert _answering(lambda: _in_pod(own_cluster, FETCH, url)) == both
    assert _answering(lambda: own_cluster.run_in_node("node-2", [*CURL, url])) == both
    assert _answering(lambda: run([*CURL, url])) == both


def test_a_pod_without_service_links_finds_the_api_server(own_cluster: Cluster) -> None:
    assert _in_pod(own_cluster, ASK_API_SERVER) == "1"


def test_there_is_no_way_out_of_the_cluster(own_cluster: Cluster) -> None:
    for name in own_cluster.settings.node_names():
        with pytest.raises(ClusterError, match="Network is unreachable"):
            own_cluster.run_in_node(name, ["ip", "route", "get", "198.51.100.1"])
    with pytest.raises(ClusterError, match=r"unreachable|No route to host|timed out"):
        _in_pod(own_cluster, FETCH, "http://198.51.100.1")


def _answering(ask: Callable[[], str]) -> set[str]:
    """Who answers, once two have; a pod that is Ready is not yet known to every kube-proxy."""
    found: set[str] = set()

    def both() -> bool:
        with contextlib.suppress(ClusterError):
            found.add(ask())
        return len(found) > 1

    wait_for(both, "two pods to answer", timeout_seconds=180)
    return found


def _pod_address(cluster: Cluster, name: str) -> str:
    return str(cluster.kubectl.json("get", "pod", name, "-n", NAMESPACE)["status"]["podIP"])


def _in_pod(cluster: Cluster, program: str, *arguments: str) -> str:
    """Run a Python program in `server-1` and return what it prints."""
    return cluster.kubectl("exec", "-n", NAMESPACE, "server-1", "--", "python", "-c", program, *arguments).strip()
