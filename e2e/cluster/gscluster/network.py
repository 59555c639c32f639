# SPDX-License-Identifier: Apache-2.0
"""The network of a cluster: one bridge in the control plane's space, one link from it to each node and one to this
machine.

No space has a default route and this machine forwards nothing for them, so nothing gets out and nothing outside gets
an answer. All of it lives in the spaces (but for this machine's end of one link, which goes with the other end), so it
ends with them and needs no undoing.
"""

import json

from gscluster.addresses import Addresses, choose, parse_destinations
from gscluster.shell import run
from gscluster.spaces import Space

BRIDGE = "nodes"
UPLINK = "machine"


def free_addresses() -> Addresses:
    """Return addresses that no route of this machine overlaps."""
    return choose(parse_destinations(json.loads(run(["ip", "-json", "-4", "route", "show", "table", "main"]) or "[]")))


def connect_control_plane(space: Space, addresses: Addresses) -> None:
    """Make the bridge in the control plane's space and link this machine to it."""
    _without_ipv6(space)
    space.run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    space.run(["ip", "address", "add", f"{addresses.control_plane}/{addresses.hosts.prefixlen}", "dev", BRIDGE])
    space.run(["ip", "link", "set", BRIDGE, "up"])
    peer = ["peer", "name", UPLINK, "netns", str(space.process_id)]
    run(["ip", "link", "add", addresses.link, "type", "veth", *peer])
    space.run(["ip", "link", "set", UPLINK, "master", BRIDGE, "up"])
    run(["sysctl", "-q", "-e", "-w", f"net.ipv6.conf.{addresses.link}.disable_ipv6=1"])
    run(["ip", "address", "add", f"{addresses.machine}/{addresses.hosts.prefixlen}", "dev", addresses.link])
    run(["ip", "link", "set", addresses.link, "up"])


def connect_node(space: Space, control_plane: Space, addresses: Addresses, number: int, nodes: int) -> None:
    """Link node `number` to the bridge and give it and the others the routes to each other's pods."""
    _without_ipv6(space)
    control_plane.run(
        ["ip", "link", "add", space.name, "type", "veth", "peer", "name", "eth0", "netns", str(space.process_id)]
    )
    control_plane.run(["ip", "link", "set", space.name, "master", BRIDGE, "up"])
    space.run(["ip", "address", "add", f"{addresses.node(number)}/{addresses.hosts.prefixlen}", "dev", "eth0"])
    space.run(["ip", "link", "set", "eth0", "up"])
    space.run(["sysctl", "-q", "-e", "-w", "net.ipv4.ip_forward=1"])
    # kube-proxy rewrites a Service address before it leaves; one that it does not know finds nobody on the bridge.
    space.run(["ip", "route", "add", str(addresses.services), "dev", "eth0"])
    for other in range(1, nodes + 1):
        if other != number:
            space.run(["ip", "route", "add", *_way_to_pods(addresses, other)])
    control_plane.run(["ip", "route", "add", *_way_to_pods(addresses, number)])
    run(["ip", "route", "add", *_way_to_pods(addresses, number), "dev", addresses.link])


def route_services_via(addresses: Addresses, number: int) -> None:
    """Lead this machine's own traffic to Service addresses over node `number`, whose kube-proxy rewrites and
    masquerades it."""
    run(["ip", "route", "replace", str(addresses.services), "via", str(addresses.node(number)), "dev", addresses.link])


def set_link(control_plane: Space, node_name: str, *, up: bool) -> None:
    """Cut or restore the link of a node at the bridge; the node itself sees a cable without signal."""
    control_plane.run(["ip", "link", "set", node_name, "up" if up else "down"])


def _way_to_pods(addresses: Addresses, number: int) -> list[str]:
    return [str(addresses.node_pods(number)), "via", str(addresses.node(number))]


def _without_ipv6(space: Space) -> None:
    space.run(["sysctl", "-q", "-e", "-w", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"])
    space.run(["sysctl", "-q", "-e", "-w", "net.ipv6.conf.lo.disable_ipv6=0"])
