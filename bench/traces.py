# SPDX-License-Identifier: Apache-2.0
"""Gearshift's number of pods against static fleets, over request traces: one JSON line for each trace, size of a pod
and number of pods at the start. Synthetic traces (spikes, steps, days, long prompts) stand beside the public ones, so
that nothing is tuned to one of them.

Run: ``tools/run python bench/traces.py --traces FOLDER`` (the files of FOLDER that are Azure, Mooncake or AIBrix
traces); ``--only PATTERN`` plays the traces whose names match.

A static fleet of a simulation serves from second 0, whatever its size; a policy has only the pods that it starts with.
So it is compared in two ways: with those, and with fleets that begin with as many pods as it does and are told their
number at second 0 (``goodputOverEqualFromStart``): what is lost against them is the policy's doing, not that of the
time that pods take to start.
"""

import argparse
import json
import math
import random
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, Role
from gearshift.perf.profiles import LLAMA_3_70B_FP8_H200
from gearshift.policy.plan import CreatePod, Plan
from gearshift.policy.snapshot import Snapshot
from gearshift.sim.fleet.controllers import Controller, Ours, Static
from gearshift.sim.fleet.outcome import Outcome
from gearshift.sim.fleet.settings import FleetSettings
from gearshift.sim.fleet.world import World
from gearshift.sim.load.arrivals import Arrival
from gearshift.sim.load.traces import read_trace
from gearshift.sim.reports.compare import rows

MOST_PODS: Final = 8
STARTS: Final = (1, 2, 4)
SIZES: Final = (4, 8)
ALL: Final = 1 << 31
SETTINGS: Final = FleetSettings(profile=LLAMA_3_70B_FP8_H200, startup_seconds=60.0)

Trace = list[Arrival]
Rate = Callable[[float], float]  # requests per second at a time


def public(folder: Path) -> Iterator[tuple[str, Trace]]:
    """Each public trace as it is, and its halves, faster and slower ones, that no number was chosen by."""
    for path in sorted([*folder.glob("*.csv.gz"), *folder.glob("*.jsonl.gz")]):
        if path.name.startswith("silicon"):
            continue
        trace, name = read_trace(path, ALL), path.name.split(".", maxsplit=1)[0]
        yield name, trace
        middle = trace[-1].at_seconds / 2
        yield f"{name}.half1", [each for each in trace if each.at_seconds < middle]
        yield f"{name}.half2", _moved([each for each in trace if each.at_seconds >= middle], -middle)
        yield f"{name}.x2", [replace(each, at_seconds=each.at_seconds / 2) for each in trace]
        yield f"{name}.waves", waves(trace)


def waves(trace: Trace) -> Trace:
    """The trace four times in a row: all of it, a third, all, two thirds of its requests."""
    span, found = trace[-1].at_seconds + 1, []
    for index, share in enumerate((1.0, 1 / 3, 1.0, 2 / 3)):
        kept = [each for number, each in enumerate(trace) if number * share % 1 < share]
        found += _moved(kept, index * span)
    return found


def _moved(trace: Trace, seconds: float) -> Trace:
    return [replace(each, at_seconds=each.at_seconds + seconds) for each in trace]


def synthetic() -> Iterator[tuple[str, Trace]]:
    """Shapes of load, with lengths as chat has them, and one of long prompts."""
    shapes: dict[str, tuple[float, Rate]] = {
        "steady": (1200, lambda _: 12.0),
        "spikes300": (2400, lambda at: 25.0 if at % 300 >= 260 else 2.0),
        "spikes600": (3600, lambda at: 25.0 if at % 600 >= 560 else 2.0),
        "onoff": (3600, lambda at: 15.0 if at % 1200 < 600 else 0.2),
        "step": (1800, lambda at: 3.0 if at < 900 else 18.0),
        "drop": (1800, lambda at: 18.0 if at < 600 else 3.0),
        "ramp": (1800, lambda at: 1.0 + 20.0 * at / 1800),
        "surge": (1500, lambda at: 1.0 + 20.0 * min(max((at - 600) / 240, 0.0), 1.0)),
        "day": (3600, lambda at: 10.0 - 9.0 * math.cos(2 * math.pi * at / 3600)),
    }
    for name, (seconds, rate) in shapes.items():
        yield name, drawn(seconds, rate, 1200, 220)
    for seed, usual in ((3, 1.0), (11, 0.25)):
        yield f"bursts{seed}", drawn(3600, bursts(random.Random(seed), usual), 2048, 28)
    yield "walk", drawn(3600, walk(random.Random(5)), 1200, 220)
    yield "long", drawn(1800, lambda at: 1.5 if at < 600 or at >= 1200 else 4.0, 6000, 200)


def bursts(draw: random.Random, usual: float) -> Rate:
    """Bursts of seconds to a minute, at random times and rates, over a usual rate: as code completion has them."""
    ends, rates, at = [], [], 0.0
    while at < 3600:
        calm, burst = draw.expovariate(1 / 50), min(60.0, draw.expovariate(1 / 12))
        ends += [at + calm, at + calm + burst]
        rates += [usual, draw.uniform(4, 25)]
        at += calm + burst
    return lambda when: rates[min(bisect_right(ends, when), len(rates) - 1)]


def walk(draw: random.Random) -> Rate:
    """A rate that drifts at random, by a third each half minute, and tends back to 6 requests per second."""
    rates, drift = [], 0.0
    for _ in range(121):
        rates.append(min(30.0, 6 * math.exp(drift)))
        drift = 0.9 * drift + draw.gauss(0, 0.35)
    return lambda when: rates[int(when // 30)]


def drawn(seconds: float, rate: Rate, prompt_tokens: float, output_tokens: float) -> Trace:
    """Poisson arrivals at a rate that varies; lengths are log-normal around their means."""
    draw, at = random.Random(7), 0.0
    found: Trace = []
    while (at := at + draw.expovariate(30.0)) < seconds:
        if draw.random() * 30.0 < rate(at):
            lengths = [max(1, round(mean * draw.lognormvariate(-0.32, 0.8))) for mean in (prompt_tokens, output_tokens)]
            found.append(Arrival(at, min(lengths[0], 100_000), lengths[1], len(found)))
    return found


def service(accelerators: int, pods: int) -> InferenceServiceSpec:
    """A service that may have 1 to `MOST_PODS` pods and starts with ``pods``."""
    return InferenceServiceSpec.model_validate(
        {
            "model": {"uri": "hf://org/model"},
            "pod": {"accelerators": accelerators},
            "roles": [{"name": "Unified", "replicas": pods, "min": 1, "max": MOST_PODS}],
            "policy": {"objectives": {"ttft": "1500ms", "itl": "50ms"}},
        }
    )


@dataclass
class Ordered:
    """A fleet that begins with some pods, is told its number at once, and then stays as it is."""

    name: str
    first: int
    pods: int

    def initial(self, spec_roles: dict[Role, int]) -> dict[Role, int]:  # noqa: ARG002 - its own number counts
        """Pods that serve at second 0."""
        return {Role.UNIFIED: self.first}

    def tick(self, snapshot: Snapshot) -> Plan:
        """Makes what is missing."""
        missing = range(len(snapshot.pods), self.pods)
        return Plan("ordered", tuple(CreatePod(n, Role.UNIFIED, Layout.TP, "Ordered") for n in missing))


def play(chosen: Controller, accelerators: int, pods: int, trace: Trace) -> Outcome:
    """One run of a service that starts with ``pods``."""
    return World(service(accelerators, pods), SETTINGS, chosen, trace).run()


def lines(name: str, accelerators: int, trace: Trace) -> Iterator[dict[str, Any]]:
    """The figures of each start, that of the best static fleet among them, beside those of the static fleets."""
    numbers = range(1, MOST_PODS + 1)
    statics = [play(Static(f"static:{n}", {Role.UNIFIED: n}), accelerators, n, trace) for n in numbers]
    best = max(numbers, key=lambda n: (statics[n - 1].good, -statics[n - 1].gpu_hours))
    for pods in sorted({*STARTS, best}):
        ours = play(Ours(), accelerators, pods, trace)
        late = [play(Ordered(f"static:{n}", pods, n), accelerators, pods, trace) for n in numbers if n > pods]
        yield {"trace": name, "accelerators": accelerators, "start": pods} | compared(ours, statics, late)


def compared(ours: Outcome, statics: Sequence[Outcome], late: Sequence[Outcome]) -> dict[str, Any]:
    """A run beside static fleets that serve from second 0, and beside those of which the last ones come ``late``."""
    figures = rows([*statics, ours])[-1]
    from_start = rows([*statics[: MOST_PODS - len(late)], *late, ours])[-1]["goodputOverEqualStatic"]
    kept = ("goodput", "gpuHours", "reversals", "actions", "bestStatic", "goodputOverBestStatic")
    more = ("gpuHoursSavedOverBestStatic", "goodputOverEqualStatic")
    return {key: figures[key] for key in (*kept, *more)} | {"goodputOverEqualFromStart": from_start}


def main() -> int:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, help="folder of public traces; synthetic ones only when left out")
    parser.add_argument("--only", default="*", help="traces whose names match, as a shell matches files")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="accelerators of a pod")
    arguments = parser.parse_args()
    found = [*(public(arguments.traces) if arguments.traces else ()), *synthetic()]
    for name, trace in found:
        if fnmatch(name, arguments.only):
            for accelerators in arguments.sizes:
                for line in lines(name, accelerators, trace):
                    print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
