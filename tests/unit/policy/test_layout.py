# SPDX-License-Identifier: Apache-2.0
"""Which layout load asks for."""

from dataclasses import replace
from typing import Any

import pytest

from gearshift.api import reasons
from gearshift.api.vocabulary import Layout, Role
from gearshift.policy.capacity import key, learn
from gearshift.policy.fleet import Fleet
from gearshift.policy.layout import layout_verdict, want
from gearshift.policy.plan import Capacity, Hold, Memory
from gearshift.policy.rates import EngineRates
from gearshift.policy.service import Load, ServiceLoad, service_load
from gearshift.policy.snapshot import Reading, Signal, Snapshot
from tests.unit.policy.build import NOW, UNKNOWN, metrics, pod, seasoned, snapshot, spec

LATE = 2.0  # seconds; the objective is 1.5


def loaded(count: int = 2, layout: Layout = Layout.TP, **values: float | Reading) -> Snapshot:
    """A service of ``count`` pods under a load that is given per pod where it is a sum."""
    totals = {
        name: value * count if isinstance(value, float | int) and name not in ("kv_usage", "ttft_p90") else value
        for name, value in values.items()
    }
    return snapshot([pod(ordinal, layout=layout) for ordinal in range(count)], metrics=metrics(**totals))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"waiting": 4}, Load.BUSY),
        ({"waiting": 400, "kv_usage": 0.89}, Load.BUSY),
        ({"waiting": 1, "ttft_p90": LATE}, Load.BUSY),
        ({"waiting": 1, "ttft_p90": 1.0}, Load.BETWEEN),
        ({"waiting": 3.9}, Load.BETWEEN),
        ({"waiting": 0.9, "ttft_p90": LATE}, Load.BETWEEN),
        ({"waiting": 4, "kv_usage": 0.9}, Load.KV_BOUND),
        ({"waiting": 1, "ttft_p90": LATE, "kv_usage": 1.0}, Load.KV_BOUND),
        ({"waiting": 0.5}, Load.CALM),
        ({"waiting": 0, "kv_usage": 1.0}, Load.CALM),
        ({"waiting": 4, "ttft_p90": UNKNOWN}, Load.BUSY),
    ],
)
def test_bands_of_load(values: dict[str, Any], expected: Load) -> None:
    """The truth table of `service_load`; the number of pods does not matter."""
    for count in (1, 3):
        state = loaded(count, **values)
        load = service_load(state, Fleet.of(state))
        assert isinstance(load, ServiceLoad)
        assert load.load is expected


@pytest.mark.parametrize(
    ("values", "signal"),
    [
        ({"waiting": UNKNOWN}, "waiting"),
        ({"running": UNKNOWN}, "running"),
        ({"kv_usage": UNKNOWN}, "kv_usage"),
        ({"waiting": 2, "ttft_p90": UNKNOWN}, "ttft_p90_seconds"),
    ],
)
def test_unknown_load_holds_and_names_signal_query_and_cause(values: dict[str, Any], signal: str) -> None:
    """Unknown is neither idle nor busy."""
    state = loaded(**values)
    hold = layout_verdict(state, seasoned(), Fleet.of(state)).hold
    assert hold is not None
    assert hold.reason == reasons.METRICS_MISSING
    assert hold.message == f"{signal} is unknown: no series: too few pods report; query the query"


def test_a_service_without_serving_pods_has_no_load() -> None:
    """Its metrics say nothing about the pods to come."""
    state = snapshot((), spec(replicas=1), metrics=metrics(waiting=100))
    assert layout_verdict(state, seasoned(), Fleet.of(state)).hold == Hold(reasons.NO_SERVING_PODS, "no pod serves")


def target(state: Snapshot, memory: Memory | None = None) -> Layout | None:
    """The wanted layout."""
    wanted = want(state, memory or seasoned(), Fleet.of(state))
    assert not isinstance(wanted, Hold)
    return wanted.target


@pytest.mark.parametrize(
    ("layouts", "busy", "calm"),
    [
        (["TP", "DP"], Layout.DP, Layout.TP),
        (["DP", "SP"], Layout.DP, Layout.SP),
        (["SP", "TP"], Layout.SP, Layout.TP),
        (["TP", "DP", "SP"], Layout.DP, Layout.TP),
        (["TP", "Shift"], Layout.SHIFT, Layout.SHIFT),
        (["DP", "TP", "Shift", "SP"], Layout.SHIFT, Layout.SHIFT),
        (["DP"], Layout.DP, Layout.DP),
    ],
)
def test_orders_of_preference(layouts: list[str], busy: Layout, calm: Layout) -> None:
    """Shift where it is allowed; else DP under load and TP without, or what comes next."""
    service = spec(engine={"kind": "Simulated"}, parallelism={"layouts": layouts})
    assert target(snapshot([pod(0)], service, metrics=metrics(waiting=9))) is busy
    assert target(snapshot([pod(0)], service, metrics=metrics())) is calm


def rates(prefill_tokens_per_second: float) -> EngineRates:
    """A pod that reads prompts at this rate."""
    return EngineRates(prefill_tokens_per_second, 0.01, 0.0001, request_seconds=0.2)


@pytest.mark.parametrize(
    ("prompt", "hits", "known", "expected"),
    [
        (7_499, 0.0, (Layout.DP, Layout.TP), Layout.DP),
        (7_501, 0.0, (Layout.DP, Layout.TP), Layout.TP),
        (14_000, 0.5, (Layout.DP, Layout.TP), Layout.DP),
        (7_501, UNKNOWN, (Layout.DP, Layout.TP), Layout.TP),
        (7_501, 0.0, (Layout.TP,), Layout.DP),
        (45_001, 0.0, (Layout.DP, Layout.TP), Layout.DP),
    ],
)
def test_long_prompts_are_not_left_to_one_accelerator(
    prompt: float, hits: float | Reading, known: tuple[Layout, ...], expected: Layout
) -> None:
    """An accelerator reads 7,500 tokens in 1.5 s, all eight of them 45,000; what is worse than both changes nothing."""
    state = loaded(1, waiting=9, requests=2, prompt_tokens=2 * prompt, prefix_hits=hits)
    measured = {Layout.DP: rates(40_000.0), Layout.TP: rates(30_000.0)}
    given = replace(state, rates={layout: measured[layout] for layout in known})
    assert target(given) is expected


def test_prompts_of_unknown_length_change_nothing() -> None:
    """Nothing was asked, or nothing is known of it."""
    for values in ({"requests": 0.0}, {"requests": UNKNOWN}, {"requests": 1.0, "prompt_tokens": UNKNOWN}):
        state = replace(loaded(1, waiting=9, **values), rates={Layout.DP: rates(1.0)})
        assert target(state) is Layout.DP


@pytest.mark.parametrize(
    ("values", "capacity", "expected"),
    [
        ({}, None, Layout.TP),
        ({"running": 16, "kv_usage": 0.5}, None, Layout.TP),
        ({"running": 17}, None, None),
        ({"kv_usage": 0.51}, None, None),
        ({"running": 90, "prompt_tokens": 500, "generation_tokens": 100}, 1000.0, Layout.TP),
        ({"running": 2, "prompt_tokens": 500, "generation_tokens": 101}, 1000.0, None),
        ({"waiting": 2, "ttft_p90": 1.0}, None, None),
        ({"waiting": 9, "kv_usage": 0.95}, None, None),
    ],
)
def test_back_to_the_latency_layout(values: dict[str, float], capacity: float | None, expected: Layout | None) -> None:
    """Only where the load is light, or clearly below what that layout was seen to carry."""
    memory = seasoned(capacity={} if capacity is None else {"Service/TP": Capacity(capacity, NOW - 60)})
    assert target(loaded(2, Layout.DP, **values), memory) is expected


def test_a_capacity_that_is_too_old_is_forgotten() -> None:
    """60 windows of 30 s."""
    state = loaded(2, Layout.DP, running=2, prompt_tokens=900, generation_tokens=90)
    old = {"Service/TP": Capacity(1000.0, NOW - 1801)}
    assert target(state, seasoned(capacity=old)) is Layout.TP


def test_unknown_rates_hold_where_a_capacity_is_to_be_compared() -> None:
    """A rate is not taken for zero."""
    state = loaded(2, Layout.DP, prompt_tokens=UNKNOWN)
    wanted = want(state, seasoned(capacity={"Service/TP": Capacity(1000.0, NOW)}), Fleet.of(state))
    assert isinstance(wanted, Hold)
    assert wanted.reason == reasons.METRICS_MISSING


def test_capacity_is_learnt_from_a_busy_service_in_one_layout() -> None:
    """Tokens per second and pod; a mix of layouts teaches nothing."""
    state = loaded(2, Layout.TP, waiting=9, prompt_tokens=700, generation_tokens=50)
    assert learn(state, seasoned(), Fleet.of(state)) == {key(None, Layout.TP): Capacity(750.0, NOW)}
    mixed = snapshot([pod(0), pod(1, layout=Layout.DP)], metrics=state.metrics)
    assert learn(mixed, seasoned(), Fleet.of(mixed)) == {}
    calm = loaded(2, Layout.TP, prompt_tokens=700)
    assert learn(calm, seasoned(), Fleet.of(calm)) == {}


def test_candidates_are_those_that_can_switch_longest_at_rest_first() -> None:
    """Then the highest ordinal; load plays no part, so the plan's id does not change with it."""
    views = [pod(0), pod(1), pod(2), pod(3, layouts=(Layout.TP,)), pod(4, layout=Layout.DP), pod(5, running=99)]
    state = snapshot(views, metrics=metrics(waiting=99))
    verdict = layout_verdict(state, seasoned(transition_at={"chat-2": NOW - 90, "chat-0": NOW - 99}), Fleet.of(state))
    assert [each.pod for each in verdict.candidates] == ["chat-5", "chat-1", "chat-0", "chat-2"]
    assert {(each.to, each.reason) for each in verdict.candidates} == {("DP", reasons.QUEUEING)}
    assert verdict.inputs["waitingPerPod"] == "16.5"


def test_pods_that_cannot_switch_are_named() -> None:
    """A layout that no pod reports is not ordered."""
    state = snapshot([pod(0, layouts=(Layout.TP,))], metrics=metrics(waiting=99))
    verdict = layout_verdict(state, seasoned(), Fleet.of(state))
    assert verdict.hold == Hold(reasons.NOT_CAPABLE, "chat-0 can't switch to layout DP")


def test_a_kv_bound_service_says_so() -> None:
    """It queues, and yet nothing is to be gained."""
    state = loaded(waiting=9, kv_usage=0.97)
    hold = layout_verdict(state, seasoned(), Fleet.of(state)).hold
    assert hold == Hold(reasons.KV_BOUND, "KV cache is 97 % full")


def test_roles_do_not_enter() -> None:
    """The choice looks at the whole service."""
    views = [pod(0, Role.PREFILL), pod(1, Role.DECODE)]
    state = snapshot(views, metrics=metrics(waiting=8))
    assert target(state) is Layout.DP
    assert state.metrics.value(Signal.WAITING) == 8
