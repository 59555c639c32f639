# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a cluster, on request: each fault has its repair, and the context managers repair whatever
happens in between."""

import contextlib
import signal
from collections.abc import Callable, Iterator

from gscluster import control_plane, network
from gscluster.cluster import Cluster
from gscluster.fast import FastCluster

AnyCluster = Cluster | FastCluster
API_SERVER = "kube-apiserver"
ELECTED = ("kube-controller-manager", "kube-scheduler")


def pause_api_server(cluster: AnyCluster) -> None:
    """Stop the API server as it is: connections stay open and nothing answers (SIGSTOP)."""
    cluster.processes.send(API_SERVER, signal.SIGSTOP)


def resume_api_server(cluster: AnyCluster) -> None:
    """Let a paused API server go on; return when it answers."""
    cluster.processes.send(API_SERVER, signal.SIGCONT)
    control_plane.wait_until_ready(cluster.kubectl, cluster.processes)


def kill_api_server(cluster: AnyCluster) -> None:
    """End the API server: connections break and new ones are refused."""
    cluster.processes.kill(API_SERVER)


def start_api_server(cluster: AnyCluster) -> None:
    """Start an API server that was killed; return when it answers."""
    cluster.processes.restart(API_SERVER)
    control_plane.wait_until_ready(cluster.kubectl, cluster.processes)


def cut_link(cluster: Cluster, node_name: str) -> None:
    """Cut a node off from everything; its pods run on."""
    network.set_link(cluster.control_plane, cluster.node(node_name).name, up=False)


def restore_link(cluster: Cluster, node_name: str) -> None:
    network.set_link(cluster.control_plane, cluster.node(node_name).name, up=True)


def kill_kubelet(cluster: Cluster, node_name: str) -> None:
    """End a kubelet; its pods run on, and the node is NotReady once the grace of the cluster's settings is over."""
    cluster.processes.kill(f"{cluster.node(node_name).name}.kubelet")


def start_kubelet(cluster: Cluster, node_name: str) -> None:
    cluster.processes.restart(f"{cluster.node(node_name).name}.kubelet")


def kill_containerd(cluster: Cluster, node_name: str) -> None:
    """End a containerd; its containers run on."""
    cluster.processes.kill(f"{cluster.node(node_name).name}.containerd")


def start_containerd(cluster: Cluster, node_name: str) -> None:
    node = cluster.node(node_name)
    cluster.processes.restart(f"{node.name}.containerd")
    node.wait_for_containerd()


@contextlib.contextmanager
def api_server_paused(cluster: AnyCluster) -> Iterator[None]:
    pause_api_server(cluster)
    try:
        yield
    finally:
        resume_api_server(cluster)


@contextlib.contextmanager
def api_server_down(cluster: AnyCluster) -> Iterator[None]:
    kill_api_server(cluster)
    try:
        yield
    finally:
        start_api_server(cluster)


@contextlib.contextmanager
def control_plane_down(cluster: Cluster) -> Iterator[None]:
    """An outage of the API server that lasts: controller manager and scheduler end with it and start after it, as they
    do wherever they elect a leader, for they can't renew their leases."""
    for name in ELECTED:
        cluster.processes.kill(name)
    try:
        with api_server_down(cluster):
            yield
    finally:
        for name in ELECTED:
            cluster.processes.restart(name)


@contextlib.contextmanager
def link_cut(cluster: Cluster, node_name: str) -> Iterator[None]:
    cut_link(cluster, node_name)
    try:
        yield
    finally:
        restore_link(cluster, node_name)


@contextlib.contextmanager
def kubelet_down(cluster: Cluster, node_name: str) -> Iterator[None]:
    kill_kubelet(cluster, node_name)
    try:
        yield
    finally:
        start_kubelet(cluster, node_name)


@contextlib.contextmanager
def containerd_down(cluster: Cluster, node_name: str) -> Iterator[None]:
    kill_containerd(cluster, node_name)
    try:
        yield
    finally:
        start_containerd(cluster, node_name)


OF_API_SERVER: dict[str, Callable[[AnyCluster], None]] = {
    "pause-api-server": pause_api_server,
    "resume-api-server": resume_api_server,
    "kill-api-server": kill_api_server,
    "start-api-server": start_api_server,
}
OF_NODE: dict[str, Callable[[Cluster, str], None]] = {
    "cut-link": cut_link,
    "restore-link": restore_link,
    "kill-kubelet": kill_kubelet,
    "start-kubelet": start_kubelet,
    "kill-containerd": kill_containerd,
    "start-containerd": start_containerd,
}
