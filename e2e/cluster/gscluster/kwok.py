# SPDX-License-Identifier: Apache-2.0
"""Nodes by the thousand: `kwok` plays the kubelets of nodes that exist only as objects, and their pods become Running
at once."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gscluster import paths
from gscluster.fast import DIE_WITH_US, FastCluster
from gscluster.waiting import wait_for

MARK = "kwok.x-k8s.io/node"
COMPONENT = "kwok"


def node_object(number: int, gpus: int) -> dict[str, Any]:
    """Return a node that kwok looks after, with a taint, so that only pods that tolerate it (or name the node) land on
    it."""
    name = f"kwok-{number}"
    resources = {"cpu": "256", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {MARK: "fake"},
            "labels": {
                "type": "kwok",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {"taints": [{"key": MARK, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"capacity": resources, "allocatable": resources},
    }


@contextlib.contextmanager
def kwok_nodes(cluster: FastCluster, nodes: int, *, gpus: int = 8, timeout_seconds: float = 120) -> Iterator[list[str]]:
    """Yield the names of `nodes` Ready nodes on a fast cluster with controllers; end kwok afterwards (the objects end
    with the cluster)."""
    argv: list[str | Path] = [
        paths.cached_program("kwok"),
        "--kubeconfig",
        cluster.kubeconfig,
        "--manage-all-nodes=false",
    ]
    selector = ["--manage-nodes-with-annotation-selector", f"{MARK}=fake", "--node-lease-duration-seconds=40"]
    cluster.processes.start(COMPONENT, [*DIE_WITH_US, *argv, *selector, "--server-address=127.0.0.1:0"])
    try:
        cluster.kubectl.create(*(node_object(number, gpus) for number in range(1, nodes + 1)))
        names = [f"kwok-{number}" for number in range(1, nodes + 1)]
        wait_for(
            lambda: ready_nodes(cluster) >= set(names),
            f"{nodes} kwok nodes to be Ready",
            timeout_seconds=timeout_seconds,
        )
        yield names
    finally:
        cluster.processes.stop(COMPONENT)


def ready_nodes(cluster: FastCluster) -> set[str]:
    """Return the names of the Ready nodes; raise ClusterError when kwok has ended."""
    cluster.processes.process_id(COMPONENT)
    nodes = cluster.kubectl.json("get", "nodes")["items"]
    return {node["metadata"]["name"] for node in nodes if _is_ready(node)}


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
