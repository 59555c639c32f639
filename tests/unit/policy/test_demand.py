# SPDX-License-Identifier: Apache-2.0
"""Demand in pods: what is served, what piles up, what is noise and what is a trend."""

import pytest

from gearshift.policy.demand import lead_seconds, level, pile_up, request_seconds, trend
from gearshift.policy.plan import Startup
from gearshift.policy.rates import EngineRates
from gearshift.policy.samples import Sample, sampled
from tests.unit.policy.build import NOW, seasoned

RATES = EngineRates(10_000.0, 0.01, 0.0001, request_seconds=0.1)
WINDOW = 30.0


def moments(*works: float, step: float = 10.0, waiting: int = 0) -> list[Sample]:
    """Samples ``step`` seconds apart, the last of them ``step`` before now."""
    return [Sample(NOW - step * (len(works) - n), work, waiting) for n, work in enumerate(works)]


@pytest.mark.parametrize(
    ("served", "requests", "expected"),
    [
        (0.5, None, 0.1),  # not known: that of usual lengths
        (0.5, 0.0, 0.1),
        (0.5, 100.0, 0.0053),  # 3,000 seen
        (2.0, 2.0, 0.871),  # 60 of 1 s, and 10 usual ones
        (0.1, 1 / 30, 0.364),  # one of 3 s, and 10 usual ones
    ],
)
def test_the_length_of_requests_is_measured(served: float, requests: float | None, expected: float) -> None:
    assert request_seconds(RATES, served, requests, WINDOW) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("samples", "waiting", "expected"),
    [
        ([], 50, 0.0),  # nothing to compare with
        ([Sample(NOW - 5, 1, 0)], 50, 0.0),  # a ripple
        ([Sample(NOW - 10, 1, 0)], 50, 5.0),
        ([Sample(NOW - 30, 1, 0), Sample(NOW - 10, 1, 40)], 50, 50 / 30),  # the steepest
        ([Sample(NOW - 40, 1, 0)], 50, 0.0),  # too long ago
        ([Sample(NOW - 20, 1, 80)], 50, 0.0),  # it shrinks
    ],
)
def test_a_queue_that_grows_is_demand(samples: list[Sample], waiting: int, expected: float) -> None:
    assert pile_up(NOW, waiting, samples, WINDOW) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ((), 0.5, 0.5),
        ((0.5, 0.5, 0.5), 0.6, 0.525),  # chance explains up to 0.18
        ((0.5, 0.5, 0.5), 0.4, 0.475),
        ((0.5, 0.5, 0.5), 1.5, 1.5),  # a change
        ((1.5, 1.5, 1.5), 0.5, 1.25),  # what falls is believed slowly
    ],
)
def test_one_window_is_noise_until_it_is_beyond_chance(before: tuple[float, ...], now: float, expected: float) -> None:
    assert level(Sample(NOW, now, 0), moments(*before), 0.1, WINDOW) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("before", "now", "rises"),
    [
        ((), 4.0, False),
        ((3.0, 3.0), 4.0, False),  # not watched for long enough
        ((1.0, 2.0, 3.0), 4.0, True),
        ((1.0, 1.0, 1.0), 4.0, False),  # a step
        ((1.0, 1.0, 2.5), 4.0, False),  # a step in two windows
        ((1.0, 2.0, 3.0), 3.0, False),  # it has ended
        ((1.0, 1.01, 1.02), 1.03, False),  # chance
    ],
)
def test_a_trend_is_growth_that_lasts(before: tuple[float, ...], now: float, rises: bool) -> None:
    found = trend(Sample(NOW, now, 0), moments(*before, step=60.0), 0.01, WINDOW, 60.0)
    assert (found > 0) == rises
    assert found <= 1.0


@pytest.mark.parametrize(("seen", "expected"), [((), 60.0), ((90.0, 110.0, 900.0), 110.0), ((4000.0,), 300.0)])
def test_demand_is_seen_ahead_by_a_start_up_as_past_pods_took(seen: tuple[float, ...], expected: float) -> None:
    startups = {f"uid-{n}": Startup("new", seconds) for n, seconds in enumerate(seen)}
    assert lead_seconds(seasoned(startups=startups), "new") == expected


def test_samples_are_kept_for_a_span_and_some_seconds_apart() -> None:
    kept = tuple(moments(1.0, 2.0, 3.0))
    assert sampled(kept, Sample(NOW, 4.0, 0), NOW, 20.0) == (*kept[1:], Sample(NOW, 4.0, 0))
    assert sampled(kept, Sample(NOW - 7, 4.0, 0), NOW - 7, 60.0) == kept
    assert sampled(kept, None, NOW, 60.0) == kept
    again = sampled(kept, Sample(NOW, 4.0, 0), NOW, 60.0)
    assert sampled(again, Sample(NOW, 4.0, 0), NOW, 60.0) == again
