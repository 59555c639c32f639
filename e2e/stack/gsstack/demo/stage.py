# SPDX-License-Identifier: Apache-2.0
"""Where the demo plays: a two-node cluster with the operator and Prometheus, gone when it ends."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gscluster import lifecycle
from gscluster.cluster import Cluster
from gscluster.kubectl import Kubectl
from gscluster.paths import cache_folder
from gscluster.settings import ClusterSettings
from gsstack import install, manifests
from gsstack.demo import screen
from gsstack.prometheus import Prometheus
from tools.tinymodel.make import make
from tools.tinymodel.shape import Shape

NAMESPACE = "demo"
PROMETHEUS_PORT = 9090
SCRAPE_SECONDS = 1


@dataclass(frozen=True)
class Stage:
    """What an act needs."""

    cluster: Cluster
    kubectl: Kubectl
    prometheus: Prometheus


def tiny_model() -> Path:
    """The tiny random Llama with its own tokenizer, made once."""
    folder = cache_folder() / "models" / "tiny"
    if not (folder / "model.safetensors").exists():
        make(folder, Shape(), 1)
    return folder


@contextlib.contextmanager
def stage(*, keep: bool) -> Iterator[Stage]:
    """Cluster, operator and Prometheus; with ``keep`` they stay."""
    screen.say("start a two-node Kubernetes: etcd, API server, scheduler, and containerd and kubelet on each node")
    cluster = lifecycle.up(ClusterSettings(nodes=2)).cluster
    prometheus = Prometheus(cluster)
    try:
        settings = {
            "GEARSHIFT_OPERATOR_PROMETHEUS_URL": prometheus.url,
            "GEARSHIFT_OPERATOR_SCRAPE_SECONDS": str(prometheus.scrape_seconds),
            "GEARSHIFT_OPERATOR_TICK_SECONDS": "1",
        }
        screen.say("install the operator")
        screen.command("kubectl apply --server-side -f crds/ && kubectl apply -k config")
        install.install(cluster.kubectl, settings)
        screen.say(f"start Prometheus at {prometheus.url}")
        prometheus.start()
        cluster.kubectl.apply(manifests.namespace(NAMESPACE))
        yield Stage(cluster, cluster.kubectl, prometheus)
    finally:
        if not keep:
            screen.say("end everything")
            lifecycle.down(cluster.settings.name)
