# SPDX-License-Identifier: Apache-2.0
"""What a cluster has left on this machine: an empty report after its end is the proof that it has cleaned up."""

import json
from collections.abc import Iterable
from ipaddress import IPv4Network
from pathlib import Path

from gscluster import state
from gscluster.addresses import Addresses, parse_destinations
from gscluster.cgroups import ControlGroup
from gscluster.node import MOUNTED
from gscluster.shell import run, succeeds


def report(name: str, addresses: Addresses) -> list[str]:
    """Return one line for each thing of the cluster that is still there; its addresses may be another cluster's now."""
    folder = state.folder_of(name)
    group = ControlGroup(name)
    on_network = [] if addresses.index in _indexes_of_others(name) else _on_network(addresses)
    return [
        *(f"process {process_id} in its control group" for process_id in sorted(group.process_ids())),
        *(f"control group {path}" for path in group.folders()),
        *(f"process {process_id}: {command}" for process_id, command in naming(command_lines(), str(folder))),
        *(f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line),
        *on_network,
        *(f"folder {path}" for path in (folder, *folders_left()) if path.exists()),
    ]


def _indexes_of_others(name: str) -> set[int]:
    others = (state.State.load(state.folder_of(other)) for other in state.names() if other != name)
    return {other.index for other in others if other is not None}


def _on_network(addresses: Addresses) -> list[str]:
    return [
        *(f"link {link}" for link in [addresses.link] if succeeds(["ip", "link", "show", link])),
        *(f"route to {network}" for network in routes_into(addresses)),
        *(f"firewall rule {rule}" for rule in firewall_rules(run(["iptables-save"]).splitlines(), addresses)),
    ]


def command_lines() -> Iterable[tuple[int, str]]:
    """Yield the id and the command line of every process; a zombie has none, and one that ends meanwhile is left
    out."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield int(process.name), (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue


def naming(commands: Iterable[tuple[int, str]], text: str) -> list[tuple[int, str]]:
    """Return those of `commands` that name a path below `text`."""
    return [(process_id, command) for process_id, command in commands if f"{text}/" in command]


def routes_into(addresses: Addresses) -> list[str]:
    """Return the routes of this machine into the cluster."""
    routes = parse_destinations(json.loads(run(["ip", "-json", "-4", "route", "show", "table", "all"]) or "[]"))
    return [str(route) for route in routes if any(route.subnet_of(network) for network in addresses.networks())]


def firewall_rules(rules: Iterable[str], addresses: Addresses) -> list[str]:
    """Return those of the lines of `iptables-save` that name the cluster's link or networks, or chains of kube-proxy or
    CNI plugins."""
    return [rule for rule in rules if any(_is_of_cluster(word, addresses) for word in rule.split())]


def _is_of_cluster(word: str, addresses: Addresses) -> bool:
    if word == addresses.link or word.startswith(("KUBE-", ":KUBE-", "CNI-", ":CNI-")):
        return True
    try:
        network = IPv4Network(word, strict=False)
    except ValueError:
        return False
    return any(network.subnet_of(own) for own in addresses.networks())


def folders_left() -> list[Path]:
    """Return the nodes' mount points that are there and empty although no cluster is left; Debian's containerd owns
    one of them."""
    if state.names():
        return []
    return [path for path in MOUNTED if path.is_dir() and not any(path.iterdir()) and path != Path("/run/containerd")]
