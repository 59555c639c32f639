# SPDX-License-Identifier: Apache-2.0
"""Pods that the present moment asks for: by demand where a yardstick is known, by symptoms where none is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gearshift.policy import tuning
from gearshift.policy.capacity import remembered
from gearshift.policy.demand import Demand, chance, demand, lead_seconds
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Hold, Memory
from gearshift.policy.pressure import known
from gearshift.policy.rates import EngineRates
from gearshift.policy.samples import Sample
from gearshift.policy.snapshot import Signal, Snapshot
from gearshift.policy.surges import rise
from gearshift.policy.symptoms import late, missed, symptoms

SIGNALS = (
    Signal.WAITING, Signal.RUNNING, Signal.KV_USAGE, Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS, Signal.TTFT_P90,
    Signal.ITL_P90,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sizing:
    """Pods that the present demand asks for.

    ``up``: as few as meet it, and what is coming; ``down``: as many as must stay; ``carry``: as few as its work keeps
    busy, without room for chance.
    """

    up: int
    down: int
    carry: int
    load: float = 0.0  # as ``carry``, measured and not rounded, where a yardstick is known
    rise: float = 0.0  # of ``load`` since a pod that serves now would have had to be made
    sample: Sample | None = None  # of the demand, where a yardstick is known


def sizing(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Sizing | Hold:
    """Pods by demand and by symptoms, the more of both.

    Demand: work of one pod by `Snapshot.rates` of the layout in use, else tokens/s against what a pod was seen to carry
    when it saturated. Symptoms, for ``n`` serving pods:

    | demand | requests queue | an objective is missed | load is light on every count | up | down | carry |
    |---|---|---|---|---|---|---|
    | known | no | no | any | demand and bursts | demand and more bursts | demand |
    | known | any | yes: see `missed` | any | as well n + 1 | as well n + 1 | as well n + 1 |
    | known | yes: see `symptoms` | any | any | as well n + 1 or more | as well n + 1 | n + 1 where buried |
    | no yardstick | yes, or | yes | no | 1.5 n | n | n |
    | no yardstick | no | no | no | 1 | n | n |
    | no yardstick | no | no | yes | 1 | n - 1 | 1 |
    | a signal is unknown | | | | Hold MetricsMissing | | |

    With a yardstick an objective that idle pods miss asks for nothing: long prompts miss TTFT there too.
    """
    values = known(snapshot.metrics, SIGNALS)
    if isinstance(values, Hold):
        return values
    pods = len(fleet.serving)
    if not pods:
        return Sizing(1, 1, 1)
    rates = snapshot.rates.get(fleet.layout(snapshot.spec.parallelism.layouts, snapshot.spec.parallelism.start))
    if rates is not None:
        return _by_rates(snapshot, memory, fleet, values, rates)
    return _by_capacity(snapshot, memory, fleet, values) or _by_symptoms(snapshot, values, pods)


def _by_rates(
    snapshot: Snapshot, memory: Memory, fleet: Fleet, values: Mapping[Signal, float], rates: EngineRates
) -> Sizing:
    found = demand(snapshot, memory, fleet, rates, values)
    objectives = snapshot.spec.policy.objectives
    share = rates.share(tuning.ITL_SHARE * objectives.itl.seconds, tuning.BUSY_SHARE)
    most = rates.share(objectives.itl.seconds, tuning.BUSY_SHARE)
    burst = rates.burst(found.level, found.request_seconds, objectives.ttft.seconds)
    up = found.backlog + max(found.ahead / share, found.ahead + tuning.BURSTS * burst)
    down = max(found.level / share, found.level + tuning.SPARE_BURSTS * burst)
    waits, misses = symptoms(snapshot, fleet, values), missed(snapshot, memory, fleet, values, found.work)
    return Sizing(
        max(waits.up, misses, math.ceil(up)),
        max(waits.down, misses, math.ceil(down)),
        max(waits.carry, misses, math.ceil(found.level / most)),
        found.level / most,
        _rise(snapshot, memory, fleet, found) / most,
        Sample(snapshot.at, found.work, found.waiting),
    )


def _rise(snapshot: Snapshot, memory: Memory, fleet: Fleet, found: Demand) -> float:
    """Work by which load has risen, beyond chance, since a pod that serves now would have had to be made.

    What the first pods were given when they came is no rise.
    """
    window = snapshot.spec.policy.window.seconds
    begun = max(memory.started_at, min(pod.since for pod in fleet.serving)) + window
    since = max(begun, snapshot.at - window - lead_seconds(memory, snapshot.revision))
    sure = found.level - chance(found.level, found.request_seconds, window)
    return rise(sure, memory.scale.samples if memory.scale is not None else (), since)


def _by_capacity(snapshot: Snapshot, memory: Memory, fleet: Fleet, values: Mapping[Signal, float]) -> Sizing | None:
    """By what a pod of the layout in use was seen to carry; None when it was not seen to saturate."""
    layout = fleet.layout(snapshot.spec.parallelism.layouts, snapshot.spec.parallelism.start)
    capacity = remembered(memory, None, layout, snapshot)
    if capacity is None:
        return None
    work = (values[Signal.PROMPT_TOKENS] + values[Signal.GENERATION_TOKENS]) / capacity
    least = symptoms(snapshot, fleet, values)
    up = max(least.up, math.ceil(work / tuning.DONOR_SHARE))
    down = max(least.down, math.ceil(work / tuning.LIGHT_SHARE))
    return Sizing(up, max(up, down), max(least.carry, math.ceil(work)))


def _by_symptoms(snapshot: Snapshot, values: Mapping[Signal, float], pods: int) -> Sizing:
    waits = values[Signal.WAITING] / pods >= tuning.QUEUE_SOME or values[Signal.KV_USAGE] >= tuning.KV_FULL
    if waits or late(snapshot, values):
        return Sizing(pods + max(1, pods // 2), pods, pods)
    return Sizing(1, pods - 1, 1) if _light(snapshot, values, pods) else Sizing(1, pods, pods)


def _light(snapshot: Snapshot, values: Mapping[Signal, float], pods: int) -> bool:
    objectives = snapshot.spec.policy.objectives
    left = max(1, pods - 1) / pods
    return (
        values[Signal.WAITING] / pods <= tuning.QUEUE_LOW
        and values[Signal.KV_USAGE] <= tuning.KV_LOW * left
        and values[Signal.RUNNING] <= tuning.RUNNING_LOW * max(1, pods - 1)
        and values[Signal.TTFT_P90] <= tuning.LIGHT_SHARE * objectives.ttft.seconds
        and values[Signal.ITL_P90] <= tuning.LIGHT_SHARE * objectives.itl.seconds
    )
