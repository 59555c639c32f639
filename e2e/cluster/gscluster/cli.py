# SPDX-License-Identifier: Apache-2.0
"""The command line of the cluster: each sub-command is one function that returns an exit status."""

import argparse
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

from gscluster import faults, lifecycle
from gscluster.cluster import Cluster
from gscluster.errors import ClusterError
from gscluster.settings import ClusterSettings

Command = Callable[[argparse.Namespace], int]


def main(words: list[str]) -> int:
    """Run one sub-command; a ClusterError becomes one message and status 1."""
    signal.signal(signal.SIGTERM, _end_by_signal)
    arguments = _parser().parse_args(words)
    command: Command = arguments.command
    try:
        return command(arguments)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130


def _end_by_signal(signal_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signal_number)  # an exception, so that a start that is under way takes itself back


def _up(arguments: argparse.Namespace) -> int:
    settings = ClusterSettings(arguments.name, arguments.nodes, arguments.gpus, arguments.node_grace)
    begin = time.monotonic()
    result = lifecycle.up(settings, arguments.image)
    if result.ran_already:
        print(f"cluster {settings.name!r} runs already with these settings")
    else:
        print(f"cluster {settings.name!r} with {settings.nodes} nodes is ready after {time.monotonic() - begin:.1f} s")
    _describe(result.cluster)
    return 0


def _describe(cluster: Cluster) -> None:
    addresses = cluster.addresses
    print(f"  export KUBECONFIG={cluster.kubeconfig}")
    print(f"  API server https://{addresses.control_plane}:6443, pods {addresses.pods}, Services {addresses.services}")
    print("  (reachable from this machine only)")
    print(f"  logs in {cluster.processes.logs_folder}")


def _down(arguments: argparse.Namespace) -> int:
    existed = lifecycle.down(arguments.name)
    print(
        f"cluster {arguments.name!r} has ended, nothing of it is left"
        if existed
        else f"no cluster {arguments.name!r}: nothing to do"
    )
    return 0


def _status(arguments: argparse.Namespace) -> int:
    cluster = lifecycle.require(arguments.name)
    for name in cluster.processes.names():
        record = cluster.processes.record(name)
        running = record is not None and record.is_running()
        print(f"{name:28} {f'process {record.process_id}' if record and running else 'ended'}")
    problems = cluster.problems()
    for problem in problems:
        print(f"problem: {problem}")
    if not problems:
        _describe(cluster)
    return 1 if problems else 0


def _logs(arguments: argparse.Namespace) -> int:
    processes = lifecycle.require(arguments.name).processes
    if arguments.component is None:
        print("\n".join(str(processes.log(name)) for name in processes.names()))
        return 0
    if processes.record(arguments.component) is None:
        raise ClusterError(f"no component {arguments.component!r}; there are: {', '.join(processes.names())}")
    print(processes.log_tail(arguments.component, arguments.lines))
    return 0


def _fault(arguments: argparse.Namespace) -> int:
    cluster = lifecycle.require(arguments.name)
    if arguments.fault in faults.OF_API_SERVER:
        faults.OF_API_SERVER[arguments.fault](cluster)
    elif arguments.node is None:
        raise ClusterError(f"fault {arguments.fault} needs a node, one of: {', '.join(cluster.settings.node_names())}")
    else:
        faults.OF_NODE[arguments.fault](cluster, arguments.node)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "gscluster", description="A real Kubernetes on this machine, without a way out of it."
    )
    parser.add_argument("--name", default=ClusterSettings.name, help="name of the cluster (default: %(default)s)")
    commands = parser.add_subparsers(required=True)
    up = commands.add_parser("up", help="start a cluster, or find it running")
    up.add_argument("--nodes", type=int, default=ClusterSettings.nodes)
    up.add_argument("--gpus", type=int, default=ClusterSettings.gpus_per_node, help="nvidia.com/gpu of each node")
    grace = ClusterSettings.node_monitor_grace_seconds
    up.add_argument(
        "--node-grace", type=int, default=grace, metavar="SECONDS", help="silence after which a node is NotReady"
    )
    up.add_argument("--image", type=Path, action="append", help="image archive to load (default: all of the cache)")
    up.set_defaults(command=_up)
    commands.add_parser("down", help="end a cluster and leave nothing of it").set_defaults(command=_down)
    commands.add_parser("status", help="components and problems; status 1 when there are any").set_defaults(
        command=_status
    )
    logs = commands.add_parser("logs", help="last lines of a component's log, or where the logs are")
    logs.add_argument("component", nargs="?")
    logs.add_argument("--lines", type=int, default=50)
    logs.set_defaults(command=_logs)
    fault = commands.add_parser("fault", help="break or repair something")
    fault.add_argument("fault", choices=[*faults.OF_API_SERVER, *faults.OF_NODE])
    fault.add_argument("node", nargs="?")
    fault.set_defaults(command=_fault)
    return parser
