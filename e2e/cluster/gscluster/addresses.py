# SPDX-License-Identifier: Apache-2.0
"""The addresses and link names of a cluster, all of them from one small index, so that clusters on one machine do not
meet."""

import dataclasses
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv4Network

from gscluster.errors import ClusterError

MAX_CLUSTERS = 16


@dataclasses.dataclass(frozen=True)
class Addresses:
    """`index` 0 has hosts in 10.89.0.0/24, pods in 10.64.0.0/16 (one /24 a node) and Services in 10.96.0.0/16."""

    index: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < MAX_CLUSTERS:
            raise ClusterError(f"cluster index {self.index}: want 0 to {MAX_CLUSTERS - 1}")

    @property
    def hosts(self) -> IPv4Network:
        return IPv4Network(f"10.89.{self.index}.0/24")

    @property
    def pods(self) -> IPv4Network:
        return IPv4Network(f"10.{64 + self.index}.0.0/16")

    @property
    def services(self) -> IPv4Network:
        return IPv4Network(f"10.{96 + self.index}.0.0/16")

    @property
    def machine(self) -> IPv4Address:
        """This machine, as nodes and pods see it."""
        return self.hosts[1]

    @property
    def control_plane(self) -> IPv4Address:
        return self.hosts[2]

    @property
    def api_service(self) -> IPv4Address:
        """The Service `kubernetes`, as pods see the API server."""
        return self.services[1]

    @property
    def link(self) -> str:
        """The only link of the cluster that this machine's own network has."""
        return f"gs{self.index}"

    def node(self, number: int) -> IPv4Address:
        return self.hosts[10 + number]

    def node_pods(self, number: int) -> IPv4Network:
        return IPv4Network(f"10.{64 + self.index}.{number}.0/24")

    def networks(self) -> tuple[IPv4Network, ...]:
        return self.hosts, self.pods, self.services


def parse_destinations(routes: Iterable[dict[str, object]]) -> list[IPv4Network]:
    """Return the destinations of `ip -json -4 route show`, without the default route, which every machine has."""
    destinations = [str(route["dst"]) for route in routes if route.get("dst") not in (None, "default")]
    return [IPv4Network(destination, strict=False) for destination in destinations]


def choose(taken: Collection[IPv4Network]) -> Addresses:
    """Return the first addresses that overlap no network in `taken`; raise ClusterError when none is left."""
    for index in range(MAX_CLUSTERS):
        candidate = Addresses(index)
        if not any(own.overlaps(other) for own in candidate.networks() for other in taken):
            return candidate
    raise ClusterError(
        f"all {MAX_CLUSTERS} address ranges for clusters overlap routes of this machine (see `ip route`)"
    )
