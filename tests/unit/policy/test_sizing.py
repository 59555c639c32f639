# SPDX-License-Identifier: Apache-2.0
"""Pods that one moment asks for: by demand, by what a layout was seen to carry, by symptoms."""

from dataclasses import replace
from typing import Any

import pytest

from gearshift.api.vocabulary import Layout
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Capacity, Hold, Memory, ScaleMemory
from gearshift.policy.rates import EngineRates
from gearshift.policy.samples import Sample
from gearshift.policy.sizing import Sizing, sizing
from gearshift.policy.snapshot import Signal, Snapshot
from gearshift.policy.symptoms import Symptoms, missed, symptoms
from tests.unit.policy.build import NOW, UNKNOWN, metrics, pod, seasoned, snapshot, spec

RATES = EngineRates(10_000.0, 0.01, 0.0001, request_seconds=0.1)
CALM = {"ttft_p90": 0.1, "itl_p90": 0.01}


def moment(pods: int, waiting_now: int = 0, **readings: Any) -> Snapshot:
    """``pods`` serving pods whose work is told by `RATES`, ``waiting_now`` requests waiting at the first."""
    views = [pod(n, waiting=0 if n else waiting_now) for n in range(pods)]
    service = spec(roles=[{"name": "Unified", "min": 1, "max": 9}], parallelism={"layouts": ["TP"]})
    state = snapshot(views, service, metrics=metrics(**{**CALM, **readings}))
    return replace(state, rates={Layout.TP: RATES})


def sized(state: Snapshot, memory: Memory | None = None) -> Sizing:
    """The sizing of a moment whose signals are known."""
    found = sizing(state, memory or seasoned(), Fleet.of(state))
    assert isinstance(found, Sizing)
    return found


@pytest.mark.parametrize(
    ("readings", "up", "carry"),
    [
        ({}, 1, 1),
        ({"prompt_tokens": 1_000}, 1, 1),  # 0.1 pods of work, 0.41 for its bursts
        ({"prompt_tokens": 5_000, "generation_tokens": 1_000}, 2, 1),  # 0.6, and 1
        ({"prompt_tokens": 20_000, "generation_tokens": 5_000}, 5, 4),  # 2.5, and 2.04; 0.7 of a pod may be busy
        ({"prompt_tokens": 200_000}, 29, 29),  # 20: so many bursts level each other out
        ({"prompt_tokens": 20_000, "requests": 2}, 8, 3),  # long requests: 1 s each, in bursts of 4.6
        ({"prompt_tokens": 20_000, "requests": 200}, 3, 3),  # short ones
        ({"prompt_tokens": 20_000, "prefix_hits": 0.75}, 2, 1),  # a quarter is computed
    ],
)
def test_demand_is_work_and_its_bursts(readings: dict[str, Any], up: int, carry: int) -> None:
    found = sized(moment(4, **readings))
    assert (found.up, found.carry) == (up, carry)
    assert found.down >= found.up


def test_a_service_without_serving_pods_needs_one() -> None:
    assert sized(moment(0)) == Sizing(1, 1, 1)


def test_an_unknown_signal_holds_but_lengths_and_hits_may_be_unknown() -> None:
    state = moment(4, waiting=UNKNOWN)
    assert isinstance(sizing(state, seasoned(), Fleet.of(state)), Hold)
    assert sized(moment(4, requests=UNKNOWN, prefix_hits=UNKNOWN)) == sized(moment(4))


@pytest.mark.parametrize(
    ("waiting", "requests", "kv_usage", "waiting_now", "expected"),
    [
        (0.0, 10, 0.0, 0, Symptoms(1, 1, 1)),
        (1.0, 10, 0.0, 9, Symptoms(1, 1, 1)),  # 0.1 s in the queue
        (1.2, 10, 0.0, 9, Symptoms(1, 4, 1)),  # 0.12 s: some wait long
        (3.0, 10, 0.0, 9, Symptoms(5, 5, 1)),  # 0.3 s
        (9.0, 10, 0.0, 9, Symptoms(7, 5, 5)),  # 0.9 s
        (90.0, 10, 0.0, 99, Symptoms(8, 5, 5)),  # 9 s: at most twice as many
        (90.0, 10, 0.0, 40, Symptoms(1, 4, 1)),  # half of them are served already
        (4.0, 0, 0.0, 9, Symptoms(5, 5, 1)),
        (4.0, 1000, 0.0, 9, Symptoms(5, 5, 1)),
        (0.0, 10, 0.95, 0, Symptoms(5, 5, 1)),
    ],
)
def test_what_waits_asks_for_pods(
    waiting: float, requests: float, kv_usage: float, waiting_now: int, expected: Symptoms
) -> None:
    state = moment(4, waiting_now)
    values = {Signal.WAITING: waiting, Signal.KV_USAGE: kv_usage}
    state = replace(state, metrics=metrics(requests=requests))
    assert symptoms(state, Fleet.of(state), values) == expected


def test_what_waits_comes_on_top_of_demand() -> None:
    found = sized(moment(4, 8, prompt_tokens=1_000.0, waiting=8.0))
    assert (found.up, found.down, found.carry) == (5, 5, 1)


def test_pods_that_just_came_did_not_make_the_queue() -> None:
    views = [*(pod(n, waiting=9) for n in range(2)), *(pod(n, since=NOW - 10) for n in (2, 3))]
    state = replace(moment(4), pods=tuple(views), metrics=metrics(requests=10))
    values = {Signal.WAITING: 90.0, Signal.KV_USAGE: 0.0}
    assert symptoms(replace(state, at=NOW), Fleet.of(state), values) == Symptoms(1, 4, 1)  # less waits than did
    values = {Signal.WAITING: 20.0, Signal.KV_USAGE: 0.0}
    assert symptoms(state, Fleet.of(state), values) == Symptoms(4, 4, 3)  # twice the two that are meant


@pytest.mark.parametrize(
    ("readings", "grown_seconds_ago", "expected"),
    [
        ({"ttft_p90": 1.6}, None, 5),
        ({"itl_p90": 0.06}, None, 5),
        ({"itl_p90": 0.06}, 121, 5),
        ({"itl_p90": 0.06}, 119, 1),  # what that pod does is not known yet
        ({"itl_p90": 0.04}, None, 1),
    ],
)
def test_objectives_that_busy_pods_miss_ask_for_one_more(
    readings: dict[str, Any], grown_seconds_ago: float | None, expected: int
) -> None:
    grown = None if grown_seconds_ago is None else NOW - grown_seconds_ago
    memory = seasoned(scale=ScaleMemory(4, grown_at=grown))
    state = moment(4, **readings)
    values = {Signal.TTFT_P90: 0.1, Signal.ITL_P90: 0.01, **{Signal[name.upper()]: n for name, n in readings.items()}}
    assert missed(state, memory, Fleet.of(state), values, 1.0) == expected
    assert missed(state, memory, Fleet.of(state), values, 0.9) == 1  # idle pods miss it too


def test_a_missed_objective_comes_on_top_of_demand_and_stays() -> None:
    found = sized(moment(4, prompt_tokens=12_000.0, itl_p90=0.06))
    assert (found.up, found.down, found.carry) == (5, 5, 5)


def test_a_rise_beyond_chance_is_told_but_not_what_the_first_pods_were_given() -> None:
    samples = tuple(Sample(NOW - ago, 0.1, 0) for ago in (80.0, 60.0, 40.0))
    state = moment(4, prompt_tokens=20_000.0, requests=200)
    memory = seasoned(scale=ScaleMemory(4, samples=samples))
    assert sized(state, memory).rise == pytest.approx(2.4, abs=0.4)
    begun = replace(state, pods=tuple(replace(each, since=NOW - 60) for each in state.pods))
    assert sized(begun, memory).rise == 0.0


@pytest.mark.parametrize(
    ("readings", "up", "down"),
    [
        ({}, 1, 3),
        ({"running": 40.0}, 1, 3),
        ({"running": 60.0}, 1, 4),
        ({"ttft_p90": 1.0}, 1, 4),
        ({"ttft_p90": 1.6}, 6, 4),
        ({"itl_p90": 0.06}, 6, 4),
        ({"waiting": 4.0}, 6, 4),
        ({"kv_usage": 0.95}, 6, 4),
    ],
)
def test_without_a_yardstick_symptoms_speak(readings: dict[str, Any], up: int, down: int) -> None:
    found = sized(replace(moment(4, **readings), rates={}))
    assert (found.up, found.down, found.sample) == (up, down, None)


def test_a_layout_that_was_seen_to_saturate_is_a_yardstick() -> None:
    memory = seasoned(capacity={"Service/TP": Capacity(1_000.0, NOW)})
    found = sized(replace(moment(4, prompt_tokens=2_000.0), rates={}), memory)
    assert (found.up, found.down, found.carry) == (3, 4, 2)
