# SPDX-License-Identifier: Apache-2.0
"""The measurement itself: start, rest, deaths and a second start, one after the other."""

import argparse
import asyncio
import json
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final, NoReturn

from bench.scale import netns
from bench.scale.api import Api
from bench.scale.deaths import kill, quantile
from bench.scale.process import Operator, cpu_seconds, operator
from bench.scale.witness import Witness
from bench.scale.world import IMAGE, machines, populate, routers_available, sidecars, start_controllers
from gscluster.audit import AuditLog, Write
from gscluster.fast import FastCluster

Json = dict[str, Any]
START_SECONDS: Final = 30.0
PEAK_MEGABYTES: Final = 300.0
REPORT_SECONDS: Final = 1.0
_ACCOUNT: Final = "gearshift-operator"
_PATIENCE_SECONDS: Final = 120.0


class Lines:
    """Prints the results and remembers whether a promise was broken."""

    def __init__(self) -> None:
        self.broken = False

    def tell(self, name: str, value: float, unit: str, promise: float | None = None) -> None:
        """One JSON line. ``promise``: the most that the value may be; None for what is only told."""
        line: dict[str, object] = {"name": f"operator.{name}", "value": round(value, 3), "unit": unit}
        if promise is not None:
            line |= {"reference": promise, "ratio": round(value / promise, 3) if promise else None}
            self.broken = self.broken or value > promise
        print(json.dumps(line), flush=True)


def main(argv: list[str]) -> int:
    """Print the lines; 1 when a promise is broken, 2 when the operator said that something is a defect."""
    arguments = _arguments(argv)
    netns.enter(argv)
    signal.signal(signal.SIGTERM, _end)
    lines = Lines()
    saved = arguments.world is not None and arguments.world.exists()
    with machines(arguments.world if saved else None) as cluster:
        config = json.loads(cluster.kubeconfig.read_text())
        defects = asyncio.run(_measure(cluster, config, arguments, lines))
        if arguments.keep is not None:
            shutil.copytree(cluster.folder, arguments.keep, dirs_exist_ok=True, ignore=shutil.ignore_patterns("etcd"))
    for line in defects:
        print(line, file=sys.stderr)
    return 2 if defects else int(lines.broken)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)  # an exception, so that processes are ended and folders removed


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=8000, help="of all services together")
    parser.add_argument("--deaths", type=int, default=300)
    parser.add_argument("--deaths-per-second", type=float, default=5.0)
    parser.add_argument("--idle-seconds", type=float, default=60.0)
    parser.add_argument(
        "--world",
        type=Path,
        help="folder that keeps what was set up, for other runs of the same size; made when it is not there",
    )
    parser.add_argument("--keep", type=Path, help="folder that gets the logs")
    return parser.parse_args(argv)


async def _measure(cluster: FastCluster, config: Json, arguments: argparse.Namespace, lines: Lines) -> list[str]:
    async with Api.connect(config) as api:
        await _set_up(cluster, api, arguments)
        witness = Witness()
        watching = asyncio.create_task(witness.run(api))
        await witness.until(lambda: len(witness.statuses) == arguments.services, _PATIENCE_SECONDS)
        with sidecars(cluster):
            with operator(cluster, IMAGE, "first") as first:
                await _start(cluster, first, witness, lines)
                await _rest(cluster, first, arguments.idle_seconds, lines)
                await _deaths(api, first, witness, arguments, lines)
                lines.tell("memory_peak", first.peak_megabytes, "MB", PEAK_MEGABYTES)
            with operator(cluster, IMAGE, "second") as second:
                await _restart(second, arguments.services, lines)
                lines.tell("restart_memory_peak", second.peak_megabytes, "MB", PEAK_MEGABYTES)
        watching.cancel()
        return first.defects() + second.defects()


async def _set_up(cluster: FastCluster, api: Api, arguments: argparse.Namespace) -> None:
    """Services, pods and routers, all of them running."""
    began = time.monotonic()
    if cluster.state is None:
        await populate(api, arguments.services, arguments.pods)
        _say(f"{arguments.services} services and {arguments.pods} pods made in {time.monotonic() - began:.0f} s")
    start_controllers(cluster)
    await routers_available(api, arguments.services)
    _say(f"routers available after {time.monotonic() - began:.0f} s")
    if cluster.state is None and arguments.world is not None:
        cluster.save_state(arguments.world)


async def _start(cluster: FastCluster, one: Operator, witness: Witness, lines: Lines) -> None:
    """From the start of the process until a status of each service says what was decided."""
    began, others = time.monotonic(), _cpu_of_others(cluster)
    wanted = witness.statuses.keys()
    decided = await witness.until(lambda: wanted <= witness.decided_at.keys(), _PATIENCE_SECONDS)
    if not decided:
        _say(f"{len(wanted - witness.decided_at.keys())} services were never decided on")
    last = max(witness.decided_at.values()) if decided else time.monotonic()
    lines.tell("decided_all", last - began, "s", START_SECONDS)
    lines.tell("decided_all_cpu", one.cpu_seconds, "s")
    lines.tell("decided_all_cpu_of_cluster", _cpu_of_others(cluster) - others, "s")
    if not await witness.until(lambda: not witness.unready(), _PATIENCE_SECONDS):
        _say(f"not Ready: {witness.unready()}")
    lines.tell("ready_all", time.monotonic() - began, "s")
    lines.tell("memory_after_start", one.megabytes, "MB", PEAK_MEGABYTES)


async def _rest(cluster: FastCluster, one: Operator, seconds: float, lines: Lines) -> None:
    """While nothing changes: what it writes beside its lease, and what it costs."""
    await asyncio.sleep(5.0)
    log = AuditLog(cluster.audit_log)
    log.mark()
    cpu = one.cpu_seconds
    await asyncio.sleep(seconds)
    writes = [write for write in log.writes(_ACCOUNT) if write.resource != "leases"]
    lines.tell("idle_writes", len(writes), "writes", 0.0)
    _say_writes(writes)
    lines.tell("idle_cpu", (one.cpu_seconds - cpu) / seconds, "cores")


async def _deaths(api: Api, one: Operator, witness: Witness, arguments: argparse.Namespace, lines: Lines) -> None:
    cpu, began = one.cpu_seconds, time.monotonic()
    waits = await kill(api, witness, arguments.deaths, arguments.deaths_per_second)
    lines.tell("deaths_cpu", (one.cpu_seconds - cpu) / (time.monotonic() - began), "cores")
    lines.tell("death_reported_p50", quantile(waits, 0.5), "s")
    lines.tell("death_reported_p99", quantile(waits, 0.99), "s", REPORT_SECONDS)
    lines.tell("death_reported_max", waits[-1], "s")
    healed = time.monotonic()
    if not await witness.until(lambda: not witness.unready(), _PATIENCE_SECONDS):
        _say(f"not Ready again: {witness.unready()}")
    lines.tell("healed_after_last_death", time.monotonic() - healed, "s")


async def _restart(one: Operator, services: int, lines: Lines) -> None:
    """From the start of a process that finds every status written until it has decided on each service."""
    began = time.monotonic()
    while (decided := await _decided(one)) < services and time.monotonic() - began < _PATIENCE_SECONDS:
        await asyncio.sleep(0.5)
    if decided < services:
        _say(f"{services - decided} services were never decided on after the restart")
    lines.tell("restart_decided_all", time.monotonic() - began, "s", START_SECONDS)
    lines.tell("restart_decided_all_cpu", one.cpu_seconds, "s")


async def _decided(one: Operator) -> int:
    try:
        return await asyncio.to_thread(one.decided)
    except (IndexError, OSError):  # it does not serve its metrics yet
        return 0


def _cpu_of_others(cluster: FastCluster) -> float:
    """Processor seconds that API server, etcd, controllers and kwok have used: they share the machine."""
    return sum(cpu_seconds(cluster.processes.process_id(name)) for name in cluster.processes.names())


def _say_writes(writes: list[Write]) -> None:
    for write in writes[:10]:
        _say(f"wrote at rest: {write.verb} {write.resource} {write.namespace}/{write.name} {write.status}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
