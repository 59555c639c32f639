# SPDX-License-Identifier: Apache-2.0
"""Status and its conditions as truth tables."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gearshift.api.conditions import CONDITION_TYPES
from gearshift.api.v1alpha1 import InferenceServiceSpec, InferenceServiceStatus
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind
from gearshift.policy.conditionview import Observed, Trouble, graver
from gearshift.policy.plan import CreatePod, Hold, Plan, Transit
from gearshift.policy.snapshot import InFlight, Metrics, PodView, Reading, Signal, Snapshot
from gearshift.policy.statusview import Report, describe, layout_column, refused, status

NO_METRICS = Metrics()
FULL = Plan("p3", hold=Hold("BudgetExhausted", "1 more pods are wanted"), reason="BudgetExhausted")
HOLD = Plan("p1", hold=Hold("Steady"), reason="Steady")
SPLIT = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 2}]


def pod(number: int, **changes: Any) -> PodView:
    """A pod that serves."""
    base = PodView(
        name=f"chat-{number}", uid=f"u{number}", ordinal=number, revision="r1", role=Role.UNIFIED, layout=Layout.TP,
        epoch=0, phase=PodPhase.SERVING, ready=True, created_at=0.0, since=0.0,
    )  # fmt: skip
    return replace(base, **changes)


def snapshot(*pods: PodView, at: float = 1000.0, metrics: Metrics = NO_METRICS, **spec: Any) -> Snapshot:
    """A service with these pods."""
    whole = {"model": {"uri": "hf://org/llama"}, "parallelism": {"layouts": ["TP", "DP"]}, **spec}
    return Snapshot(
        at=at,
        namespace="prod",
        name="chat",
        uid="uid-1",
        generation=3,
        spec=InferenceServiceSpec.model_validate(whole),
        revision="r1",
        pods=pods,
        metrics=metrics,
    )


def shown(
    given: Snapshot, plan: Plan = HOLD, *, router: bool = True, trouble: Trouble | None = None, grown: bool = False
) -> InferenceServiceStatus:
    """The first status of a service, or of one that has grown before."""
    before = InferenceServiceStatus(grown_at=datetime(2026, 1, 1, tzinfo=UTC) if grown else None)
    return status(given, plan, before, Report(Observed(router, trouble)))


def condition(given: InferenceServiceStatus, kind: str) -> tuple[str, str]:
    """Status and reason of one condition."""
    found = next(entry for entry in given.conditions if entry.type == kind)
    return found.status, found.reason


def prefill(number: int, **changes: Any) -> PodView:
    """A prefill pod."""
    return pod(number, role=Role.PREFILL, **changes)


def decode(number: int, **changes: Any) -> PodView:
    """A decode pod."""
    return pod(number, role=Role.DECODE, **changes)


SPEC_FAULT = Trouble("PodRefused", "bad", spec=True)
OTHER_FAULT = Trouble("ChildConflict", "taken")
PASSING = Trouble("PodRefused", "exceeded quota", passing=True)


def test_the_gravest_trouble_is_told() -> None:
    assert graver(None, PASSING, OTHER_FAULT, SPEC_FAULT) == SPEC_FAULT
    assert graver(PASSING, OTHER_FAULT) == OTHER_FAULT
    assert graver(PASSING, None) == PASSING
    assert graver(None) is None


@pytest.mark.parametrize("trouble", [None, OTHER_FAULT, SPEC_FAULT, PASSING])
@pytest.mark.parametrize("pods", [(), (pod(0),), (pod(0, revision="r0"),), (pod(0, ready=False),)])
def test_reconciling_and_stalled_are_never_both_true(pods: tuple[PodView, ...], trouble: Trouble | None) -> None:
    found = shown(snapshot(*pods), trouble=trouble)
    assert (condition(found, "Reconciling")[0], condition(found, "Stalled")[0]) != ("True", "True")


@pytest.mark.parametrize(
    ("pods", "options", "expected"),
    [
        ((prefill(0), decode(1), decode(2)), {}, ("True", "Serving")),
        ((prefill(0), decode(1)), {}, ("False", "PodsStarting")),
        ((prefill(0), decode(1), decode(2, ready=False)), {}, ("False", "PodsStarting")),
        ((prefill(0), decode(1), decode(2, phase=PodPhase.SWITCHING)), {}, ("True", "Serving")),
        ((prefill(0), decode(1)), {"grown": True}, ("True", "Serving")),
        ((prefill(0),), {"grown": True}, ("False", "RoleUnserved")),
        ((prefill(0),), {}, ("False", "RoleUnserved")),
        ((prefill(0, ready=False), decode(1, phase=PodPhase.DRAINING)), {}, ("False", "NoServingPods")),
        ((prefill(0), decode(1)), {"router": False}, ("False", "RouterStarting")),
        ((prefill(0), decode(1), decode(2)), {"trouble": SPEC_FAULT}, ("False", "PodRefused")),
        ((prefill(0), decode(1), decode(2)), {"trouble": OTHER_FAULT}, ("True", "Serving")),
    ],
)
def test_ready(pods: tuple[PodView, ...], options: dict[str, Any], expected: tuple[str, str]) -> None:
    assert condition(shown(snapshot(*pods, roles=SPLIT), **options), "Ready") == expected


def after(before: InferenceServiceStatus, given: Snapshot) -> InferenceServiceStatus:
    """The status that follows another."""
    return status(given, HOLD, before, Report(Observed(router_available=True)))


def test_a_parked_service_is_ready_and_grows_anew_when_it_comes_back() -> None:
    full = shown(snapshot(pod(0), pod(1), replicas=2))
    assert full.grown_at is not None
    parked = after(full, snapshot(replicas=0, at=1100.0))
    assert condition(parked, "Ready") == ("True", "ScaledToZero")
    assert parked.grown_at is None
    back = after(parked, snapshot(pod(0), replicas=2, at=1200.0))
    assert condition(back, "Ready") == ("False", "PodsStarting")
    assert condition(after(back, snapshot(pod(0), pod(1), replicas=2)), "Ready") == ("True", "Serving")


def test_a_service_that_has_grown_is_ready_again_with_what_it_needs_at_least() -> None:
    full = shown(snapshot(pod(0), pod(1), replicas=2))
    out = after(full, snapshot(pod(0, ready=False), pod(1, ready=False), replicas=2))
    assert condition(out, "Ready") == ("False", "NoServingPods")
    assert condition(after(out, snapshot(pod(0), replicas=2)), "Ready") == ("True", "Serving")


def test_a_service_that_an_operator_without_this_rule_called_ready_stays_so() -> None:
    full = shown(snapshot(pod(0), pod(1), replicas=2)).model_copy(update={"grown_at": None})
    assert condition(after(full, snapshot(pod(0), replicas=2)), "Ready") == ("True", "Serving")


CREATE = Plan("p2", (CreatePod(1, Role.UNIFIED, Layout.TP, "PodMissing"),), reason="PodMissing")


@pytest.mark.parametrize(
    ("pods", "plan", "options", "expected"),
    [
        ((pod(0),), HOLD, {}, ("False", "UpToDate")),
        ((pod(0, revision="r0"),), HOLD, {}, ("True", "RollingOut")),
        ((), CREATE, {}, ("True", "Scaling")),
        ((), FULL, {}, ("True", "BudgetExhausted")),
        ((pod(0), pod(1, deleting=True)), HOLD, {}, ("True", "Scaling")),
        ((pod(0, ready=False, phase=PodPhase.STARTING),), HOLD, {}, ("True", "PodsStarting")),
        ((pod(0, ready=False, phase=PodPhase.SWITCHING),), HOLD, {}, ("False", "UpToDate")),
        ((pod(0),), HOLD, {"router": False}, ("True", "RouterStarting")),
        ((pod(0, revision="r0"),), HOLD, {"trouble": SPEC_FAULT}, ("False", "PodRefused")),
        ((), CREATE, {"trouble": OTHER_FAULT}, ("False", "ChildConflict")),
        ((), CREATE, {"trouble": PASSING}, ("True", "PodRefused")),
    ],
)
def test_reconciling(pods: tuple[PodView, ...], plan: Plan, options: dict[str, Any], expected: tuple[str, str]) -> None:
    assert condition(shown(snapshot(*pods), plan, **options), "Reconciling") == expected


@pytest.mark.parametrize(
    ("trouble", "stalled", "valid"),
    [
        (None, ("False", "Progressing"), ("True", "Accepted")),
        (OTHER_FAULT, ("True", "ChildConflict"), ("True", "Accepted")),
        (PASSING, ("False", "Progressing"), ("True", "Accepted")),
        (SPEC_FAULT, ("True", "PodRefused"), ("False", "PodRefused")),
    ],
)
def test_stalled_and_spec_valid(trouble: Trouble | None, stalled: tuple[str, str], valid: tuple[str, str]) -> None:
    found = shown(snapshot(pod(0)), trouble=trouble)
    assert (condition(found, "Stalled"), condition(found, "SpecValid")) == (stalled, valid)


LAYOUT = Transit("chat-0", TransitionKind.LAYOUT, "DP", 0, "Queueing")


@pytest.mark.parametrize(
    ("given", "plan", "expected"),
    [
        (snapshot(pod(0)), HOLD, ("True", "Converged")),
        (snapshot(pod(0)), Plan("p", (LAYOUT,)), ("False", "TransitionInFlight")),
        (snapshot(pod(0)), Plan("p", proposal=(LAYOUT,), hold=Hold("AwaitingApproval")), ("False", "AwaitingApproval")),
        (snapshot(pod(0)), Plan("p", proposal=(LAYOUT,), hold=Hold("ApprovalExpired")), ("False", "ApprovalExpired")),
        (snapshot(pod(0)), Plan("p", proposal=(LAYOUT,), hold=Hold("Advisory")), ("True", "Converged")),
        (snapshot(pod(0, layout=Layout.SHIFT)), HOLD, ("False", "Diverged")),
        (
            replace(snapshot(pod(0)), in_flight=(InFlight("t", "chat-0", TransitionKind.LAYOUT, "DP", 1.0),)),
            HOLD,
            ("False", "TransitionInFlight"),
        ),
    ],
)
def test_layout_converged(given: Snapshot, plan: Plan, expected: tuple[str, str]) -> None:
    assert condition(shown(given, plan), "LayoutConverged") == expected


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ({}, ("Unknown", "MetricsNotRead")),
        ({(Signal.WAITING, None): Reading(1.0)}, ("True", "MetricsFresh")),
        ({(Signal.TTFT_P90, None): Reading(None, quiet=True)}, ("True", "MetricsFresh")),
        ({(Signal.WAITING, None): Reading(1.0), (Signal.RUNNING, None): Reading(None)}, ("False", "MetricsMissing")),
    ],
)
def test_metrics_available(readings: dict[Any, Reading], expected: tuple[str, str]) -> None:
    assert condition(shown(snapshot(pod(0), metrics=Metrics(readings))), "MetricsAvailable") == expected


def test_time_and_load_alone_change_nothing() -> None:
    first = shown(snapshot(pod(0)))
    later = snapshot(pod(0, running=7, waiting=3, kv_usage=0.5), at=5000.0)
    plan = replace(HOLD, message="other words", inputs={"waiting": "3"})
    assert status(later, plan, first, Report(Observed(True))) == first


def test_every_condition_is_there_with_the_generation() -> None:
    found = shown(snapshot())
    assert tuple(entry.type for entry in found.conditions) == CONDITION_TYPES
    assert {entry.observed_generation for entry in found.conditions} == {3}


def test_a_refused_spec_keeps_what_was_known() -> None:
    before = shown(snapshot(pod(0)))
    after = refused(before, 4, "SpecInvalid", "roles: no", 2000.0)
    assert (after.pods, after.observed_generation) == (before.pods, 4)
    assert condition(after, "SpecValid") == ("False", "SpecInvalid")
    assert condition(after, "Stalled") == ("True", "SpecInvalid")
    assert refused(after, 4, "SpecInvalid", "roles: no", 3000.0) == after


def test_columns_for_people() -> None:
    found = shown(snapshot(prefill(0), decode(1, layout=Layout.DP), decode(2), roles=SPLIT))
    assert (found.layout, found.split, found.replicas, found.ready_replicas) == ("DP=1,TP=2", "1/2", 3, 3)
    assert layout_column([pod(0), pod(1)]) == "TP"
    assert layout_column([]) == ""


def test_desired_follows_flips_and_creations() -> None:
    given = replace(
        snapshot(prefill(0), decode(1), decode(2), roles=SPLIT),
        in_flight=(InFlight("t", "chat-2", TransitionKind.ROLE, "Prefill", 1.0),),
    )
    assert [(role.name, role.desired, role.ready) for role in shown(given).roles] == [
        (Role.PREFILL, 2, 1),
        (Role.DECODE, 1, 2),
    ]


def test_many_pods_are_summed_up() -> None:
    found = shown(snapshot(*(pod(number) for number in range(65)), replicas=65))
    assert found.pods == []
    assert found.pod_summary is not None
    assert (found.pod_summary.total, found.pod_summary.by_layout) == (65, {Layout.TP: 65})


def test_a_decision_is_told_in_at_most_253_characters() -> None:
    plan = Plan("p", tuple(CreatePod(number, Role.UNIFIED, Layout.TP, "PodMissing") for number in range(100)))
    assert describe(plan).endswith("(100 actions)")
    assert len(describe(plan)) <= 253
