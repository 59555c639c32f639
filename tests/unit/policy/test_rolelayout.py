# SPDX-License-Identifier: Apache-2.0
"""Layouts of roles: new pods start with them, running ones are brought to them, and load moves only the others."""

from dataclasses import replace
from typing import Any

import pytest

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec, InferenceServiceStatus
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.policy.conditionview import Observed
from gearshift.policy.decide import decide
from gearshift.policy.plan import CreatePod, Plan, Transit
from gearshift.policy.snapshot import PodView, Snapshot
from gearshift.policy.statusview import Report, status
from tests.unit.policy.build import both, metrics, pod, seasoned, snapshot, spec, starting

PREFILL, DECODE = Role.PREFILL, Role.DECODE
BUSY = both(
    metrics(waiting=100, running=50, kv_usage=0.2, ttft_p90=9),
    metrics(PREFILL, waiting=50),
    metrics(DECODE, waiting=50),
)


def service(prefill: str | None = "DP", decode: str | None = "TP", **fields: Any) -> InferenceServiceSpec:
    """Two pods of each role, with layouts of their own."""
    roles = [{"name": "Prefill", "replicas": 2}, {"name": "Decode", "replicas": 2}]
    for role, layout in zip(roles, (prefill, decode), strict=True):
        role.update({} if layout is None else {"layout": layout})
    return spec(roles=roles, **fields)


def views(*layouts: Layout) -> tuple[PodView, ...]:
    """Two prefill and two decode pods."""
    return tuple(pod(n, PREFILL if n < 2 else DECODE, layout) for n, layout in enumerate(layouts))


DP, TP = Layout.DP, Layout.TP
AS_ORDERED = views(DP, DP, TP, TP)


def transits(plan: Plan) -> list[tuple[str, str, str]]:
    """Pod, target and reason."""
    return [(each.pod, each.to, each.reason) for each in plan.actions if isinstance(each, Transit)]


def test_new_pods_start_with_the_layout_of_their_role() -> None:
    plan = decide(snapshot((), service()), seasoned())
    made = {(each.role, each.layout) for each in plan.actions if isinstance(each, CreatePod)}
    assert made == {(PREFILL, DP), (DECODE, TP)}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (snapshot(AS_ORDERED, service()), []),
        (snapshot(views(DP, TP, TP, TP), service()), [("chat-1", "DP", reasons.ROLE_LAYOUT)]),
        (snapshot(views(DP, DP, TP, DP), service()), [("chat-3", "TP", reasons.ROLE_LAYOUT)]),
        (snapshot(views(DP, DP, TP, DP), service(decode=None)), []),
        (snapshot(views(DP, DP, TP, DP), service(), hold=True), []),
        (snapshot(views(DP, DP, TP, DP), service(policy={"actuation": "Advisory"})), [("chat-3", "TP", "RoleLayout")]),
    ],
)
def test_running_pods_are_brought_to_the_layout_of_their_role(
    state: Snapshot, expected: list[tuple[str, str, str]]
) -> None:
    """It carries out a field of the spec, so nobody need approve it; a hold holds it."""
    assert transits(decide(state, seasoned())) == expected


def test_a_pod_that_has_changed_its_role_takes_the_layout_of_the_new_one() -> None:
    flipped = replace(AS_ORDERED[2], role=PREFILL, epoch=1)
    plan = decide(snapshot((*AS_ORDERED[:2], flipped, AS_ORDERED[3]), service()), seasoned())
    assert transits(plan) == [("chat-2", "DP", reasons.ROLE_LAYOUT)]


def test_load_moves_only_pods_whose_role_has_no_layout() -> None:
    """Requests queue, so pods would take DP: the decode pods keep what the spec gives them."""
    memory = seasoned("Layout:DP")
    held = snapshot(views(DP, DP, TP, TP), service(), metrics=BUSY)
    assert transits(decide(held, memory)) == []
    loose = snapshot(views(DP, DP, TP, TP), service(decode=None), metrics=BUSY)
    assert transits(decide(loose, memory)) == [("chat-3", "DP", reasons.QUEUEING)]


def test_a_pod_is_not_taken_while_the_other_of_its_role_is_down() -> None:
    state = snapshot((*views(DP, TP)[1:], starting(0, PREFILL), *AS_ORDERED[2:]), service())
    plan = decide(state, seasoned())
    assert (transits(plan), plan.reason) == ([], reasons.CAPACITY_KEPT)


def test_a_pod_that_cant_is_told() -> None:
    stuck = replace(AS_ORDERED[0], layout=TP, layouts=(TP,))
    plan = decide(snapshot((stuck, *AS_ORDERED[1:]), service()), seasoned())
    assert (plan.actions, plan.reason) == ((), reasons.NOT_CAPABLE)


def test_a_humans_order_wins() -> None:
    ordered = service(override={"layout": "TP", "until": "2100-01-01T00:00:00Z"})
    plan = decide(snapshot(AS_ORDERED, ordered), seasoned())
    assert [(to, why) for _, to, why in transits(plan)] == [("TP", reasons.OVERRIDE)]


@pytest.mark.parametrize(("layouts", "expected"), [((DP, DP, TP, TP), "True"), ((DP, TP, TP, TP), "False")])
def test_the_condition_says_when_it_is_done(layouts: tuple[Layout, ...], expected: str) -> None:
    state = snapshot(views(*layouts), service())
    plan = decide(replace(state, hold=True), seasoned())
    told = status(state, plan, InferenceServiceStatus(), Report(Observed(True)))
    assert next(each.status for each in told.conditions if each.type == "LayoutConverged") == expected
    assert PodPhase.SERVING is state.pods[0].phase
