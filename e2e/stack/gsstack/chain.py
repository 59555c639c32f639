# SPDX-License-Identifier: Apache-2.0
"""The whole chain on the cluster of the tests: operator with short ticks and Prometheus, and faults of its parts."""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gscluster.audit import AuditLog, Write
from gscluster.cluster import Cluster
from gscluster.kubectl import Kubectl
from gscluster.node import Node
from gscluster.waiting import wait_for
from gsstack import install
from gsstack.install import OPERATOR_NAMESPACE
from gsstack.prometheus import Prometheus

OPERATOR = "deployment/gearshift-operator"
LEASE = ("leases", OPERATOR_NAMESPACE, "gearshift-operator")
OPERATOR_ACCOUNT = f"system:serviceaccount:{OPERATOR_NAMESPACE}:gearshift-operator"


@dataclass(frozen=True)
class Chain:
    """An installed Gearshift."""

    cluster: Cluster
    prometheus: Prometheus

    @property
    def kubectl(self) -> Kubectl:
        return self.cluster.kubectl

    @classmethod
    def install(cls, cluster: Cluster) -> "Chain":
        """Install operator and Prometheus; an operator of an earlier session is restarted, so that its code is new."""
        prometheus = Prometheus(cluster)
        ran_already = cluster.kubectl.succeeds("get", OPERATOR, "-n", OPERATOR_NAMESPACE)
        install.install(cluster.kubectl, settings(prometheus.url, prometheus.scrape_seconds))
        if ran_already:
            cluster.kubectl("rollout", "restart", OPERATOR, "-n", OPERATOR_NAMESPACE)
            install.wait_for_operator(cluster.kubectl)
        prometheus.start()
        return cls(cluster, prometheus)

    def stop_operator(self) -> None:
        """Scale the operator to nothing; return when its pod is gone."""
        self.kubectl("scale", OPERATOR, "-n", OPERATOR_NAMESPACE, "--replicas=0")
        wait_for(lambda: not self.operator_pods(), "the operator's pod to go", timeout_seconds=60)

    def start_operator(self) -> None:
        """Scale it to one again; return when it has rolled out."""
        self.kubectl("scale", OPERATOR, "-n", OPERATOR_NAMESPACE, "--replicas=1")
        install.wait_for_operator(self.kubectl)

    def kill_operator(self) -> None:
        """End the operator's process at once (SIGKILL); the kubelet starts it again."""
        (pod,) = self.operator_pods()
        kill_processes(self.cluster, pod, "gearshift.operator")

    def writes(self, log: AuditLog) -> list[Write]:
        """The operator's writes since the mark of the API server's log, but for the renewals of its lease."""
        return [write for write in log.writes(OPERATOR_ACCOUNT) if _object(write) != LEASE]

    def renewals(self, log: AuditLog) -> list[Write]:
        """The operator's writes to its lease since the mark."""
        return [write for write in log.writes(OPERATOR_ACCOUNT) if _object(write) == LEASE]

    def operator_pods(self) -> list[str]:
        """Uids of the operator's pods."""
        words = ["get", "pods", "-n", OPERATOR_NAMESPACE, "-l", "app.kubernetes.io/component=operator"]
        return [pod["metadata"]["uid"] for pod in self.kubectl.json(*words)["items"]]


def _object(write: Write) -> tuple[str, str, str]:
    return write.resource, write.namespace, write.name


def settings(prometheus_url: str | None, scrape_seconds: int = 1) -> dict[str, str]:
    """Environment of an operator that looks and acts as often as tests want it to."""
    prometheus = {
        "GEARSHIFT_OPERATOR_PROMETHEUS_URL": str(prometheus_url),
        "GEARSHIFT_OPERATOR_SCRAPE_SECONDS": str(scrape_seconds),
    }
    often = {"GEARSHIFT_OPERATOR_TICK_SECONDS": "1", "GEARSHIFT_OPERATOR_NODE_LOST_SECONDS": "5"}
    return often | (prometheus if prometheus_url else {})


def kill_processes(cluster: Cluster, pod_uid: str, words: str) -> None:
    """Send SIGKILL to the processes of a pod whose command line contains ``words``; there must be one."""
    found = [one for one in _processes_of(cluster, pod_uid) if words in _command_line(one)]
    assert found, f"no process of pod {pod_uid} has {words!r} in its command line"
    for process_id in found:
        os.kill(process_id, signal.SIGKILL)


def running_in(nodes: Sequence[Node], namespace: str) -> list[str]:
    """Containers of a namespace's pods that run on nodes, sandboxes included; those that have ended don't count."""
    wanted = f'labels."io.kubernetes.pod.namespace"=={namespace}'
    ctr = ["ctr", "--namespace", "k8s.io"]
    found: list[str] = []
    for node in nodes:
        tasks = node.space.run([*ctr, "tasks", "list"]).splitlines()
        running = {line.split()[0] for line in tasks if line.split()[2] == "RUNNING"}
        found += sorted(running & set(node.space.run([*ctr, "containers", "list", "--quiet", wanted]).split()))
    return found


def _processes_of(cluster: Cluster, pod_uid: str) -> set[int]:
    """Ids on this machine of the processes in a pod's control group."""
    folders = [folder for folder in cluster.cgroup.folders() if f"pod{pod_uid}" in str(folder)]
    return {int(line) for folder in folders for line in _read(folder / "cgroup.procs").split()}


def _command_line(process_id: int) -> str:
    return _read(Path(f"/proc/{process_id}/cmdline")).replace("\0", " ")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it has ended meanwhile
