# SPDX-License-Identifier: Apache-2.0
"""Budgets of accelerators keep pods from being added, and take none."""

from typing import Any

import pytest

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.policy.budget import room
from gearshift.policy.decide import decide
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import CreatePod, DeletePod, ScaleMemory
from gearshift.policy.snapshot import NamespaceBudget, Snapshot
from tests.unit.policy.build import pod, seasoned, snapshot, spec


def service(limit: int | None, **fields: Any) -> InferenceServiceSpec:
    """A service of pods with 8 accelerators."""
    return spec(**{"replicas": 4, "policy": {} if limit is None else {"maxAccelerators": limit}, **fields})


def state(limit: int | None, of_all: NamespaceBudget | None = None, count: int = 2, **fields: Any) -> Snapshot:
    """It has ``count`` pods."""
    return snapshot([pod(n) for n in range(count)], service(limit, **fields), namespace_budget=of_all)


@pytest.mark.parametrize(
    ("limit", "of_all", "expected"),
    [
        (None, None, None),
        (24, None, 1),
        (23, None, 0),
        (None, NamespaceBudget(64, 40), 1),
        (24, NamespaceBudget(64, 48), 0),
        (64, NamespaceBudget(64, 0), 6),
        (8, None, 0),
        (0, None, 0),
        (None, NamespaceBudget(8, 100), 0),
    ],
)
def test_room_is_the_least_that_any_budget_leaves(
    limit: int | None, of_all: NamespaceBudget | None, expected: int | None
) -> None:
    given = state(limit, of_all)
    found = room(given, Fleet.of(given))
    assert (None if found is None else found.pods) == expected


def test_growth_stops_at_the_budget_and_says_what_bounds_it() -> None:
    plan = decide(state(24), seasoned())
    assert [action for action in plan.actions if isinstance(action, CreatePod)] == list(plan.actions)
    assert len(plan.actions) == 1
    full = decide(state(24, count=3), seasoned())
    assert full.reason == reasons.BUDGET_EXHAUSTED
    assert full.message == (
        "1 more pods of 8 accelerators are wanted, 3 exist, 0 may be added: policy.maxAccelerators is 24"
    )


def test_the_namespace_is_named() -> None:
    plan = decide(state(None, NamespaceBudget(16, 8)), seasoned())
    assert plan.message.endswith("namespace prod may hold 16 accelerators, other services hold 8")


def test_a_pod_on_its_way_out_still_holds_its_accelerators() -> None:
    """Its successor waits for it, and is made then."""
    going = [pod(0), pod(1, deleting=True)]
    assert decide(snapshot(going, service(16, replicas=2)), seasoned()).reason == reasons.BUDGET_EXHAUSTED
    assert decide(snapshot(going[:1], service(16, replicas=2)), seasoned()).actions


def test_a_failed_pod_is_removed_though_its_successor_must_wait() -> None:
    plan = decide(snapshot([pod(0), pod(1, failed=True)], service(16, replicas=2)), seasoned())
    (action,) = plan.actions
    assert isinstance(action, DeletePod)


def test_a_budget_below_what_runs_takes_nothing() -> None:
    plan = decide(state(8, replicas=2), seasoned())
    assert (plan.actions, plan.reason) == ((), reasons.STEADY)


def test_scaling_desires_no_more_than_the_budget_has_room_for() -> None:
    memory = seasoned(scale=ScaleMemory(desired=5, wanted=5))
    plan = decide(state(24, count=3, replicas=None, roles=[{"name": "Unified", "max": 8}]), memory)
    assert (plan.pods, plan.reason) == (3, reasons.BUDGET_EXHAUSTED)
