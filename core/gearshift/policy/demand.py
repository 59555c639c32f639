# SPDX-License-Identifier: Apache-2.0
"""Demand on a service, in pods: what it serves, what piles up unserved, and where both are heading.

Served work alone is no demand: a fleet that is full serves as much as it can, whatever is asked of it. What is asked
beyond that shows as a queue that grows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gearshift.api.vocabulary import Role
from gearshift.policy import tuning
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Memory
from gearshift.policy.rates import EngineRates
from gearshift.policy.samples import Sample
from gearshift.policy.snapshot import Signal, Snapshot
from gearshift.policy.startup import expected_seconds


@dataclass(frozen=True, slots=True)
class Demand:
    """Work that arrives, in pods that it keeps busy."""

    work: float  # of the last window
    level: float  # without the noise of one window
    ahead: float  # level by the time that a pod which is made now serves
    backlog: float  # pods that are busy for a window with what waits now; requests do not move to other pods
    request_seconds: float  # that one request keeps a pod busy
    waiting: int  # requests that wait at this moment


def demand(
    snapshot: Snapshot, memory: Memory, fleet: Fleet, rates: EngineRates, values: Mapping[Signal, float]
) -> Demand:
    """Demand by the rates of one pod, after the samples of the moments before that ``memory`` holds.

    To what is served comes what the queue grows by.
    """
    samples = memory.scale.samples if memory.scale is not None else ()
    window = snapshot.spec.policy.window.seconds
    served = rates.work(computed(snapshot, values[Signal.PROMPT_TOKENS]), values[Signal.GENERATION_TOKENS])
    each = request_seconds(rates, served, snapshot.metrics.value(Signal.REQUESTS), window)
    waiting = sum(pod.waiting for pod in fleet.serving)
    work = served + each * pile_up(snapshot.at, waiting, samples, window)
    now = Sample(snapshot.at, work, waiting)
    usual = level(now, samples, each, window)
    ahead = usual + trend(now, samples, each, window, lead_seconds(memory, snapshot.revision))
    backlog = min(float(len(fleet.serving)), waiting * each / window)
    return Demand(work, usual, ahead, backlog, each, waiting)


def computed(snapshot: Snapshot, prompt_tokens: float, role: Role | None = None) -> float:
    """Prompt tokens that are computed: those in the prefix cache are not. An unknown share of hits is none.

    ``role`` is whose prompt tokens they are, None: the whole service's.
    """
    hits = snapshot.metrics.value(Signal.PREFIX_HITS, role) or 0.0
    return prompt_tokens * (1 - min(max(hits, 0.0), 1.0))


def request_seconds(rates: EngineRates, served: float, requests: float | None, window: float) -> float:
    """Seconds that a request keeps a pod busy: the mean of those of the window and of a few usual ones.

    | requests / s | result |
    |---|---|
    | unknown, or 0 | that of usual lengths |
    | few in the window | near that of usual lengths |
    | many | work / requests |
    """
    if not requests:
        return rates.request_seconds
    seen, usual = requests * window, tuning.USUAL_REQUESTS
    return (served * window + usual * rates.request_seconds) / (seen + usual)


def pile_up(at: float, waiting: int, samples: Sequence[Sample], window: float) -> float:
    """Requests per second by which the queue has grown, the steepest growth up to now within the window; at least 0.

    Shorter spans than `tuning.RISE_SECONDS` are ripples of arrivals.
    """
    before = [each for each in samples if tuning.RISE_SECONDS <= at - each.at <= window]
    return max((max(0, waiting - each.waiting) / (at - each.at) for each in before), default=0.0)


def level(now: Sample, samples: Sequence[Sample], each_seconds: float, window: float) -> float:
    """Work without the noise of one window.

    | work now | level |
    |---|---|
    | above the mean of the last window's samples by more than chance explains | work now: load has risen |
    | else | that mean: what differs is chance, which has room of its own |
    """
    recent = [*(each.work for each in samples if 0 < now.at - each.at <= window), now.work]
    mean = sum(recent) / len(recent)
    return now.work if now.work > mean + chance(mean, each_seconds, window) else mean


def chance(work: float, each_seconds: float, window: float) -> float:
    """Pods by which the work of a window may differ from its mean without a cause; lengths vary as the mean does."""
    return tuning.CHANCE_DEVIATIONS * math.sqrt(2 * work * each_seconds / window)


def trend(now: Sample, samples: Sequence[Sample], each_seconds: float, window: float, span: float) -> float:
    """Pods by which work grows in ``span`` seconds, when it has grown for `tuning.TREND_SPANS` of them; at least 0.

    The least of those growths, less what chance explains: a step or a burst grows in one or two of them, and ends.
    """
    points = [_at(samples, now.at - back * span) for back in range(tuning.TREND_SPANS, 0, -1)]
    known = [point for point in points if point is not None]
    if len(known) < tuning.TREND_SPANS:
        return 0.0
    noise = chance(now.work, each_seconds, window)
    return max(0.0, min(later.work - before.work for before, later in pairwise((*known, now))) - noise)


def _at(samples: Sequence[Sample], at: float) -> Sample | None:
    """The last sample at or before ``at``."""
    return next((sample for sample in reversed(samples) if sample.at <= at), None)


def lead_seconds(memory: Memory, revision: str) -> float:
    """Seconds from the creation of a pod to serving, as past ones took: how far demand is to be seen ahead.

    At most `tuning.LONGEST_LEAD_SECONDS`: what load does later is not known.
    """
    expected = expected_seconds(memory, revision)
    return min(tuning.STARTUP_SECONDS if expected is None else expected, tuning.LONGEST_LEAD_SECONDS)
