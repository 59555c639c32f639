# SPDX-License-Identifier: Apache-2.0
"""Pods that fail, nodes that are lost, services that are deleted."""

import json
import time
from collections.abc import Iterator

import pytest

from gscluster.fast import FastCluster, fast_cluster
from tests.functional.operator.world import Operator, Space, install, operator, until

pytestmark = pytest.mark.functional


@pytest.fixture(scope="module")
def cluster() -> Iterator[FastCluster]:
    """With controllers: garbage is collected, and nodes get their taints."""
    with fast_cluster(controllers=True) as running:
        install(running)
        yield running


@pytest.fixture(scope="module")
def leader(cluster: FastCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """An operator that waits two seconds for a lost node."""
    with operator(cluster, tmp_path_factory.mktemp("operator"), node_lost_seconds="2") as one:
        yield one


def put_node(cluster: FastCluster, name: str, *, ready: bool) -> None:
    """A node whose kubelet says what the test wants."""
    cluster.kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    room = {"cpu": "64", "memory": "256Gi", "pods": "100", "ephemeral-storage": "1Ti"}
    status = {"conditions": conditions, "allocatable": room, "capacity": room}
    cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


@pytest.mark.usefixtures("leader")
def test_a_failed_pod_is_replaced(space: Space) -> None:
    space.apply()
    (sidecar,) = space.serve(1).values()
    (old,) = space.kubelet.pods()
    space.kubelet.report(old["metadata"]["name"], sidecar.address, "Failed", ready=False)
    fresh = until(
        lambda: [pod for pod in space.kubelet.pods() if pod["metadata"]["uid"] != old["metadata"]["uid"]],
        "a new pod",
        60,
    )
    assert len(fresh) == 1
    space.kubelet.run_all(1)
    until(lambda: space.is_true("Ready"), "the service to serve again")


@pytest.mark.usefixtures("leader")
def test_pods_of_a_lost_node_are_replaced_without_waiting_for_it(cluster: FastCluster, space: Space) -> None:
    put_node(cluster, "lost-one", ready=True)
    space.apply(pod={"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}})
    bound = until(lambda: [pod for pod in space.kubelet.pods() if pod["spec"].get("nodeName")], "the pod on the node")
    space.kubelet.run_all(1)
    cluster.kubectl("delete", "node", "lost-one")
    old = bound[0]["metadata"]["uid"]
    until(
        lambda: (
            [pod["metadata"]["uid"] for pod in space.kubelet.pods()] not in ([], [old])
            and old not in [pod["metadata"]["uid"] for pod in space.kubelet.pods()]
        ),
        "the pod to be replaced",
        30,
    )


@pytest.mark.usefixtures("leader")
def test_a_deleted_service_leaves_nothing(cluster: FastCluster, space: Space) -> None:
    kinds = ("pods", "services", "deployments", "serviceaccounts", "roles", "rolebindings", "pdb", "networkpolicies")
    before = {f"{body['kind']}/{body['metadata']['name']}" for body in space.items(*kinds)}
    space.apply()
    space.serve(1)
    cluster.kubectl("delete", "gsvc", "chat", "-n", space.name, "--timeout=20s")
    until(
        lambda: {f"{body['kind']}/{body['metadata']['name']}" for body in space.items(*kinds)} <= before,
        "all children to go",
        60,
    )


@pytest.mark.usefixtures("leader")
def test_a_service_made_again_under_its_name_gets_children_of_its_own(cluster: FastCluster, space: Space) -> None:
    space.apply()
    space.serve(1)
    old = space.get("gsvc", "chat")["metadata"]["uid"]
    cluster.kubectl("delete", "gsvc", "chat", "-n", space.name, "--wait=false")
    until(lambda: not space.items("gsvc"), "the service to go")
    space.apply()
    new = space.get("gsvc", "chat")["metadata"]["uid"]
    assert new != old
    until(lambda: len(space.kubelet.pods()) == 1 and _owner(space.kubelet.pods()[0]) == new, "a pod of the new", 120)
    space.serve(1)


def _owner(pod: dict[str, dict[str, list[dict[str, str]]]]) -> str:
    return pod["metadata"]["ownerReferences"][0]["uid"]


@pytest.mark.usefixtures("leader")
def test_pods_of_an_unready_node_wait_while_no_other_node_could_run_them(cluster: FastCluster, space: Space) -> None:
    put_node(cluster, "away", ready=True)
    space.apply(pod={"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}})
    (pod,) = until(lambda: [pod for pod in space.kubelet.pods() if pod["spec"].get("nodeName")], "the pod on the node")
    space.serve(1)
    uid = pod["metadata"]["uid"]
    put_node(cluster, "away", ready=False)
    time.sleep(6)  # three times the grace
    assert [pod["metadata"]["uid"] for pod in space.kubelet.pods()] == [uid]
    put_node(cluster, "spare", ready=True)
    until(lambda: uid not in space.uids(), "the pod to be replaced", 120)
    for node in ("away", "spare"):
        cluster.kubectl("delete", "node", node)


@pytest.mark.usefixtures("leader")
def test_evictions_go_one_by_one_and_what_they_take_is_made_again(cluster: FastCluster, space: Space) -> None:
    space.apply(roles=[{"name": "Unified", "replicas": 2}])
    space.serve(2)
    until(lambda: space.get("pdb", "chat")["status"].get("disruptionsAllowed") == 1, "the budget to be counted", 120)
    old = [pod["metadata"] for pod in space.kubelet.pods()]
    results = [evict(cluster, space, pod["name"]) for pod in old]
    assert results == [True, False]
    until(lambda: old[0]["uid"] not in space.uids(), "the pod to go")
    space.serve(2)


def evict(cluster: FastCluster, space: Space, pod: str) -> bool:
    """Whether the API server takes an eviction."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": space.name}}
    file = cluster.folder / f"evict-{space.name}-{pod}.json"
    file.write_text(json.dumps(body))
    path = f"/api/v1/namespaces/{space.name}/pods/{pod}/eviction"
    return bool(cluster.kubectl.succeeds("create", "--raw", path, "-f", str(file)))


@pytest.mark.usefixtures("leader")
def test_a_service_deleted_while_its_pods_are_made_leaves_nothing(cluster: FastCluster, space: Space) -> None:
    space.apply(roles=[{"name": "Unified", "replicas": 60}])
    until(space.kubelet.pods, "the first pods")
    cluster.kubectl("delete", "gsvc", "chat", "-n", space.name, "--timeout=20s")
    until(lambda: not space.kubelet.pods(), "all pods to go", 120)
    assert not [body for body in space.items("services", "deployments", "pdb") if "ownerReferences" in body["metadata"]]
