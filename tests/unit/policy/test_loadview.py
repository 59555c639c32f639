# SPDX-License-Identifier: Apache-2.0
"""Demand and capacity for people: two digits, written seldom."""

from dataclasses import replace

import pytest

from gearshift.api.v1alpha1.status import LoadStatus
from gearshift.api.vocabulary import Layout, Role
from gearshift.policy.fleet import Fleet
from gearshift.policy.loadview import REWRITE_SECONDS, load_status
from gearshift.policy.plan import Capacity, Memory
from gearshift.policy.rates import EngineRates
from gearshift.policy.snapshot import Metrics, Snapshot
from tests.unit.policy.build import NOW, UNKNOWN, both, metrics, pod, pods, seasoned, snapshot, split

RATES = {Layout.TP: EngineRates(10_000.0, 0.01, 0.0001, 0.2)}  # ITL 50 ms: 80 % of a pod for sequences
BUSY = metrics(prompt_tokens=1234, generation_tokens=567, prefix_hits=0.5)


def told(state: Snapshot, previous: LoadStatus | None = None, memory: Memory | None = None) -> LoadStatus:
    """Load in status."""
    return load_status(state, memory or seasoned(), Fleet.of(state), "profile x", previous)


def numbers(load: LoadStatus) -> tuple[int | None, ...]:
    """Demand and capacity of prefill, then of decode."""
    phases = (load.prefill, load.decode)
    return tuple(n for p in phases for n in (p.demand_tokens_per_second, p.capacity_tokens_per_second))


def test_unified_pods_serve_both_phases() -> None:
    """Cached prompt tokens are no demand."""
    load = told(snapshot([pod(0), pod(1)], metrics=BUSY, rates=RATES))
    assert numbers(load) == (620, 20_000, 570, 16_000)
    assert (load.prefix_hit_percent, load.capacity_from) == (50, "profile x")


def test_split_roles_are_measured_by_role() -> None:
    """A decode pod counts the prompts that it was sent too, and a prefill pod one token of each answer."""
    by_role = both(
        metrics(Role.PREFILL, prompt_tokens=4000, generation_tokens=10),
        metrics(Role.DECODE, prompt_tokens=4000, generation_tokens=900, prefix_hits=1),
    )
    load = told(snapshot(pods(3, 1), split(3, 1), metrics=by_role, rates=RATES))
    assert numbers(load) == (4000, 30_000, 900, 8000)


def test_what_was_seen_stands_in_for_what_is_not_modelled() -> None:
    seen = {"Prefill/TP": Capacity(5000, NOW - 60), "Decode/TP": Capacity(700, NOW - 60)}
    load = told(snapshot(pods(2, 2), split(2, 2)), memory=seasoned(capacity=seen))
    assert numbers(load) == (0, 10_000, 0, 1400)
    assert load.capacity_from == "pods that were seen to saturate; profile x"


def test_the_capacity_of_all_is_not_known_when_that_of_one_is_not() -> None:
    load = told(snapshot([pod(0), pod(1, layout=Layout.DP)], metrics=BUSY, rates=RATES))
    assert numbers(load) == (620, None, 570, None)


def test_unknown_demand_is_left_out_never_zero() -> None:
    load = told(snapshot([pod(0)], metrics=Metrics()))
    assert numbers(load) == (None, None, None, None)
    assert load.dump()["prefill"] == {}


@pytest.mark.parametrize(
    ("later", "prompt_tokens", "written"),
    [
        (REWRITE_SECONDS, 617 / 0.5, False),
        (REWRITE_SECONDS, 1500, False),  # a quarter is noise
        (REWRITE_SECONDS, 2000, True),
        (REWRITE_SECONDS - 1, 2000, False),
        (REWRITE_SECONDS, 0, True),
    ],
)
def test_load_is_written_seldom(later: float, prompt_tokens: float, written: bool) -> None:
    state = snapshot([pod(0)], metrics=BUSY, rates=RATES)
    first = told(state)
    busy = metrics(prompt_tokens=prompt_tokens, generation_tokens=567, prefix_hits=0.5)
    assert (told(replace(state, at=NOW + later, metrics=busy), first) != first) == written


def test_what_becomes_known_or_unknown_is_written_at_once() -> None:
    state = snapshot([pod(0)], metrics=BUSY, rates=RATES)
    lost = replace(state, at=NOW + 1, metrics=both(metrics(prompt_tokens=UNKNOWN)))
    assert numbers(told(lost, told(state)))[0] is None
    assert numbers(told(replace(state, at=NOW + 2), told(lost)))[0] == 620


def test_another_source_is_told_at_once() -> None:
    """Such as once pods have been placed, and the GPU of their nodes is known."""
    state = snapshot([pod(0)], metrics=BUSY)
    first = told(state)
    later = load_status(replace(state, at=NOW + 1), seasoned(), Fleet.of(state), "unknown: no such model", first)
    assert later.capacity_from == "unknown: no such model"


def test_an_idle_service_writes_nothing_and_probes_are_no_demand() -> None:
    state = snapshot([pod(0)], rates=RATES)
    first = told(state)
    for later, tokens, hits in ((60, 0.0, 0.0), (120, 9.0, 1.0), (600, 3.0, 0.2)):
        probed = replace(state, at=NOW + later, metrics=metrics(prompt_tokens=tokens, prefix_hits=hits))
        assert told(probed, first) == first
