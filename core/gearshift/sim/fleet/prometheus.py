# SPDX-License-Identifier: Apache-2.0
"""The operator's queries over the simulated pods' series, answered as Prometheus answers them.

Same samples, same windows, same extrapolation of rates and interpolation of quantiles, and the same rule for what is
unknown: fewer than `COVERAGE` of the pods report.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gearshift.api.vocabulary import Role
from gearshift.policy.queries import COVERAGE, QUANTILE, SAMPLES
from gearshift.policy.snapshot import Metrics, Reading, Signal
from gearshift.sim.fleet.counters import ITL_BOUNDS, TTFT_BOUNDS
from gearshift.sim.fleet.pod import SimPod

EXTRAPOLATED = 1.1  # mean intervals up to which Prometheus takes a rate to the edge of its range
Number = Callable[["Sample"], float]


@dataclass(frozen=True, slots=True)
class Sample:
    """One scrape of one pod."""

    at: float
    waiting: float
    running: float
    kv_usage: float
    requests: float
    prompt_tokens: float
    cached_tokens: float
    generation_tokens: float
    ttft: tuple[int, ...]
    itl: tuple[int, ...]


class Prometheus:
    """Samples by pod."""

    def __init__(self, scrape_seconds: float) -> None:
        self.scrape_seconds = scrape_seconds
        self._series: dict[str, deque[Sample]] = {}

    def scrape(self, pods: Iterable[SimPod], at: float) -> None:
        """Take a sample of each pod."""
        for pod in pods:
            counters = pod.counters
            sample = Sample(
                at,
                pod.waiting,
                pod.running,
                pod.kv_usage,
                counters.requests,
                counters.prompt_tokens,
                counters.cached_tokens,
                counters.generation_tokens,
                tuple(counters.ttft),
                tuple(counters.itl),
            )
            self._series.setdefault(pod.uid, deque(maxlen=600)).append(sample)

    def metrics(self, pods: Sequence[SimPod], window_seconds: float, at: float) -> Metrics:
        """Readings over the service and over each role, of the pods that serve."""
        groups: dict[Role | None, list[SimPod]] = {}
        for pod in pods:
            groups.setdefault(None, []).append(pod)
            groups.setdefault(pod.role, []).append(pod)
        span = math.ceil(max(window_seconds, SAMPLES * self.scrape_seconds))
        found = {}
        for role, members in groups.items():
            query = _Query([self._window(pod.uid, at - span, at) for pod in members], at - span, at)
            found.update({(signal, role): reading for signal, reading in query.readings().items()})
        return Metrics(found)

    def _window(self, uid: str, start: float, end: float) -> list[Sample]:
        return [sample for sample in self._series.get(uid, ()) if start < sample.at <= end]


@dataclass(frozen=True, slots=True)
class _Query:
    """The windows of the pods of one scope; a pod that reports nothing has an empty one."""

    windows: list[list[Sample]]
    start: float
    end: float

    def readings(self) -> dict[Signal, Reading]:
        pods = len(self.windows)
        return {
            Signal.WAITING: self._mean(lambda sample: sample.waiting, pods),
            Signal.RUNNING: self._mean(lambda sample: sample.running, pods),
            Signal.KV_USAGE: self._mean(lambda sample: sample.kv_usage, 1),
            Signal.REQUESTS: self._rate(lambda sample: sample.requests, pods),
            Signal.PROMPT_TOKENS: self._rate(lambda sample: sample.prompt_tokens, pods),
            Signal.GENERATION_TOKENS: self._rate(lambda sample: sample.generation_tokens, pods),
            Signal.PREFIX_HITS: self._share(lambda sample: sample.cached_tokens, lambda sample: sample.prompt_tokens),
            Signal.TTFT_P90: self._quantile(lambda sample: sample.ttft, TTFT_BOUNDS),
            Signal.ITL_P90: self._quantile(lambda sample: sample.itl, ITL_BOUNDS),
        }

    def _mean(self, number: Number, times: int) -> Reading:
        found = [sum(map(number, window)) / len(window) for window in self.windows if window]
        return self._reading(found, lambda: times * sum(found) / len(found))

    def _rate(self, number: Number, times: int) -> Reading:
        found = [self._increase([number(sample) for sample in w], w) for w in self.windows if len(w) > 1]
        return self._reading(found, lambda: times * sum(found) / len(found) / (self.end - self.start))

    def _share(self, part: Number, whole: Number) -> Reading:
        parts, total = self._rate(part, 1), self._rate(whole, 1)
        if parts.value is None or total.value is None:
            return parts
        if not total.value:
            return Reading(None, self.end, 0, why="no requests in the window", quiet=True)
        return Reading(parts.value / total.value, self.end, 1)

    def _quantile(self, counts: Callable[[Sample], tuple[int, ...]], bounds: tuple[float, ...]) -> Reading:
        found = [self._buckets([counts(sample) for sample in w], w) for w in self.windows if len(w) > 1]
        total = [sum(column) for column in zip(*found, strict=True)]
        if found and len(found) >= math.ceil(COVERAGE * len(self.windows)) and not sum(total):
            return Reading(None, self.end, 0, why="no requests in the window", quiet=True)
        return self._reading(found, lambda: interpolate(total, bounds))

    def _buckets(self, rows: list[tuple[int, ...]], window: list[Sample]) -> list[float]:
        return [self._increase([row[index] for row in rows], window) for index in range(len(rows[0]))]

    def _increase(self, values: Sequence[float], window: list[Sample]) -> float:
        """Prometheus' extrapolated increase over the range."""
        sampled = window[-1].at - window[0].at
        grown = values[-1] - values[0]
        mean = sampled / (len(window) - 1)
        before, after = window[0].at - self.start, self.end - window[-1].at
        if before >= EXTRAPOLATED * mean:
            before = mean / 2
        if after >= EXTRAPOLATED * mean:
            after = mean / 2
        if grown > 0 and values[0] >= 0:
            before = min(before, sampled * values[0] / grown)  # a counter is never taken below zero
        return grown * (sampled + before + after) / sampled

    def _reading(self, found: Sequence[object], value: Callable[[], float]) -> Reading:
        if not found or len(found) < math.ceil(COVERAGE * len(self.windows)):
            return Reading(None, why="no series: too few pods report")
        return Reading(value(), self.end, 1)


def interpolate(counts: Sequence[float], bounds: tuple[float, ...]) -> float:
    """Prometheus' `histogram_quantile` over counts by bucket, the last one without bound."""
    rank, below = QUANTILE * sum(counts), 0.0
    for index, count in enumerate(counts):
        if below + count >= rank:
            if index == len(bounds):
                return bounds[-1]
            low = bounds[index - 1] if index else 0.0
            return low + (bounds[index] - low) * (rank - below) / count if count else low
        below += count
    return bounds[-1]
