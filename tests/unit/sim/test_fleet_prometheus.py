# SPDX-License-Identifier: Apache-2.0
"""Readings of the simulator's Prometheus: windows, extrapolation, coverage, quantiles."""

import pytest

from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.policy.snapshot import Reading, Signal
from gearshift.sim.fleet.counters import TTFT_BOUNDS
from gearshift.sim.fleet.pod import SimPod
from gearshift.sim.fleet.prometheus import Prometheus, interpolate
from tests.unit.sim.fleets import SETTINGS, service


def pod(ordinal: int = 0) -> SimPod:
    made = SimPod(ordinal, ordinal, service(), SETTINGS, Role.UNIFIED, Layout.TP)
    made.phase = PodPhase.SERVING
    return made


def scraped(pods: list[SimPod], until: float, tokens_per_second: float = 0.0) -> Prometheus:
    prometheus = Prometheus(5.0)
    at = 0.0
    while at <= until:
        for each in pods:
            each.counters.prompt_tokens = int(at * tokens_per_second)
        prometheus.scrape(pods, at)
        at += 5.0
    return prometheus


def read(prometheus: Prometheus, pods: list[SimPod], at: float, signal: Signal, window: float = 30.0) -> Reading:
    return prometheus.metrics(pods, window, at).reading(signal)


def test_a_rate_is_that_of_the_counter_over_all_pods() -> None:
    pods = [pod(0), pod(1)]
    prometheus = scraped(pods, 60.0, 100.0)
    assert read(prometheus, pods, 60.0, Signal.PROMPT_TOKENS).value == pytest.approx(200.0, rel=0.01)


def test_a_pod_that_does_not_report_counts_as_the_mean_until_too_few_do() -> None:
    known = [pod(n) for n in range(5)]
    prometheus = scraped(known, 60.0, 100.0)
    assert read(prometheus, [*known, pod(9)], 60.0, Signal.PROMPT_TOKENS).value == pytest.approx(600.0, rel=0.01)
    few = read(prometheus, [known[0], pod(8), pod(9)], 60.0, Signal.PROMPT_TOKENS)
    assert (few.value, few.why) == (None, "no series: too few pods report")


def test_old_samples_leave_the_window() -> None:
    pods = [pod()]
    prometheus = scraped(pods, 60.0)
    assert read(prometheus, pods, 60.0, Signal.WAITING).value == 0.0
    assert read(prometheus, pods, 200.0, Signal.WAITING).value is None


def test_a_short_window_holds_four_scrapes() -> None:
    pods = [pod()]
    assert read(scraped(pods, 60.0, 10.0), pods, 60.0, Signal.PROMPT_TOKENS, window=1.0).value == pytest.approx(10.0)


def test_a_quantile_without_requests_is_quiet() -> None:
    pods = [pod()]
    found = read(scraped(pods, 60.0), pods, 60.0, Signal.TTFT_P90)
    assert (found.value, found.quiet) == (None, True)


def test_quantiles_are_interpolated_in_their_bucket() -> None:
    counts = [0.0] * (len(TTFT_BOUNDS) + 1)
    counts[TTFT_BOUNDS.index(0.5)] = 100.0
    assert interpolate(counts, TTFT_BOUNDS) == pytest.approx(0.25 + 0.9 * 0.25)
    counts[-1] = 900.0
    assert interpolate(counts, TTFT_BOUNDS) == TTFT_BOUNDS[-1]
