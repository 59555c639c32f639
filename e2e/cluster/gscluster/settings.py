# SPDX-License-Identifier: Apache-2.0
"""What a user may choose about a cluster, checked once."""

import dataclasses
import re

from gscluster.errors import ClusterError

MAX_NODES = 9


@dataclasses.dataclass(frozen=True)
class ClusterSettings:
    """Two starts with equal settings mean the same cluster."""

    name: str = "gearshift"
    nodes: int = 2
    gpus_per_node: int = 8
    """`nvidia.com/gpu` in the capacity of each node."""
    node_monitor_grace_seconds: int = 40
    """A node that has been silent for so long is NotReady (Kubernetes: 50); kubelets report every 5 s."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,19}", self.name):
            raise ClusterError(f"name {self.name!r}: want 1 to 20 of a-z, 0-9 and '-', a letter first")
        if not 1 <= self.nodes <= MAX_NODES:
            raise ClusterError(f"nodes {self.nodes}: want 1 to {MAX_NODES}")
        if not 0 <= self.gpus_per_node <= 64:
            raise ClusterError(f"gpus per node {self.gpus_per_node}: want 0 to 64")
        if not 10 <= self.node_monitor_grace_seconds <= 3600:
            raise ClusterError(f"node monitor grace {self.node_monitor_grace_seconds} s: want 10 to 3600")

    def node_names(self) -> list[str]:
        return [f"node-{number}" for number in range(1, self.nodes + 1)]

    def differences(self, other: "ClusterSettings") -> list[str]:
        """Return 'field: own value, not other's' for every field that differs."""
        own, others = dataclasses.asdict(self), dataclasses.asdict(other)
        return [f"{field}: {own[field]}, not {others[field]}" for field in own if own[field] != others[field]]
