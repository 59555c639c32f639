# SPDX-License-Identifier: Apache-2.0
"""The arbiter: which wish becomes the plan, and what becomes of it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind
from gearshift.policy.decide import decide
from gearshift.policy.plan import CreatePod, DeletePod, Memory, Transit
from gearshift.policy.snapshot import Metrics, Snapshot
from tests.unit.policy.build import (
    LONG_AGO,
    NOW,
    UNKNOWN,
    both,
    metrics,
    pod,
    pods,
    seasoned,
    snapshot,
    spec,
    split,
    starting,
)

BUSY = metrics(waiting=100)
HOT_PREFILL = both(metrics(Role.PREFILL, ttft_p90=3.0), metrics(Role.DECODE))
BLIND = Metrics()
WANTED = seasoned("Layout:DP", "Role:Prefill")


def until(seconds: float) -> str:
    """An RFC 3339 time, from `NOW`."""
    return datetime.fromtimestamp(NOW + seconds, UTC).isoformat()


def ordered(seconds: float = 60, service: InferenceServiceSpec | None = None, **order: str) -> InferenceServiceSpec:
    """A service with an override."""
    base = (service or spec(replicas=2)).dump()
    return InferenceServiceSpec.model_validate({**base, "override": {**order, "until": until(seconds)}})


def acting(actuation: str, **fields: Any) -> InferenceServiceSpec:
    """A service of two pods with an actuation."""
    return spec(replicas=2, policy={"actuation": actuation}, **fields)


TWO = (pod(0), pod(1))


def test_nothing_to_do_is_a_hold() -> None:
    """A plan is never empty-handed: it says Steady."""
    plan = decide(snapshot(TWO), seasoned())
    assert (plan.actions, plan.proposal) == ((), ())
    assert plan.hold is not None
    assert plan.hold.reason == plan.reason == reasons.STEADY


def test_a_shift_acts() -> None:
    """One pod, with the epoch that it is expected to have."""
    plan = decide(snapshot((pod(0, epoch=4), pod(1, epoch=7)), metrics=BUSY), WANTED)
    assert plan.actions == (Transit("chat-1", TransitionKind.LAYOUT, "DP", 7, reasons.QUEUEING),)
    assert plan.hold is None
    assert plan.message == "50 requests wait per pod"
    assert plan.inputs["waitingPerPod"] == "50"


def test_repair_comes_before_all_else() -> None:
    """Also before the rollout and the flip that are wanted too."""
    views = (*pods(2, 2), pod(4, failed=True), pod(5, Role.PREFILL, revision="old"))
    plan = decide(snapshot(views, split(2, 2), metrics=HOT_PREFILL), WANTED)
    assert plan.actions == (DeletePod("chat-4", "uid-4", reasons.POD_FAILED),)


def test_scale_up_comes_before_rollout_and_flip() -> None:
    """More pods first."""
    views = (*pods(2, 2), pod(5, Role.PREFILL, revision="old"))
    plan = decide(snapshot(views, split(2, 4), metrics=HOT_PREFILL), WANTED)
    assert plan.actions == (CreatePod(4, Role.DECODE, Layout.TP, reasons.POD_MISSING),)


def test_rollout_comes_before_flip() -> None:
    """The pod would have to be replaced anyway."""
    views = (*pods(2, 1), pod(3, Role.DECODE, revision="old"))
    plan = decide(snapshot(views, split(2, 2), metrics=HOT_PREFILL), WANTED)
    assert plan.actions == (DeletePod("chat-3", "uid-3", reasons.ROLLOUT),)


def test_flip_comes_before_shift_and_scale_down() -> None:
    """Both would be right too."""
    readings = both(HOT_PREFILL, metrics(waiting=100))
    plan = decide(snapshot(pods(2, 4), split(2, 2), metrics=readings), WANTED)
    assert plan.actions == (Transit("chat-5", TransitionKind.ROLE, "Prefill", 0, reasons.PREFILL_PRESSURE),)


def test_shift_comes_before_scale_down() -> None:
    """The last in the order."""
    three = (*TWO, pod(2))
    assert decide(snapshot(three, spec(replicas=2), metrics=BUSY), WANTED).reason == reasons.QUEUEING
    assert decide(snapshot(three, spec(replicas=2)), WANTED).actions == (
        DeletePod("chat-2", "uid-2", reasons.SCALE_DOWN),
    )


def test_a_shift_goes_on_where_a_flip_is_vetoed() -> None:
    """The flip would break a floor, the shift does not."""
    service = spec(
        roles=[{"name": "Prefill", "replicas": 2}, {"name": "Decode", "replicas": 2, "min": 2}], policy={"dwell": "1s"}
    )
    plan = decide(snapshot(pods(2, 2), service, metrics=both(HOT_PREFILL, metrics(waiting=99))), WANTED)
    assert plan.reason == reasons.QUEUEING


def test_a_waiting_rollout_does_not_block_scale_down() -> None:
    """Nor does it let a transition through."""
    views = (starting(0), pod(1, revision="old"), pod(2, revision="old"))
    plan = decide(snapshot(views, spec(replicas=2), metrics=BUSY), WANTED)
    assert plan.actions == (DeletePod("chat-0", "uid-0", reasons.SCALE_DOWN),)
    stuck = decide(snapshot(views, spec(replicas=3)), seasoned())
    assert stuck.reason == reasons.ROLLOUT_WAITING


@pytest.mark.parametrize(
    ("actuation", "approved", "acts", "reason"),
    [
        ("Auto", False, True, reasons.QUEUEING),
        ("Advisory", False, False, reasons.ADVISORY),
        ("Advisory", True, False, reasons.ADVISORY),
        ("Approve", False, False, reasons.AWAITING_APPROVAL),
        ("Approve", True, True, reasons.QUEUEING),
    ],
)
def test_actuation(actuation: str, approved: bool, acts: bool, reason: str) -> None:
    """The truth table of actuation."""
    state = snapshot(TWO, acting(actuation), metrics=BUSY)
    ident = decide(state, WANTED).id
    plan = decide(replace(state, approved=ident if approved else "other"), WANTED)
    assert bool(plan.actions) is acts
    assert bool(plan.proposal) is not acts
    assert plan.reason == reason
    assert plan.id == ident


def test_the_message_names_the_id_to_approve() -> None:
    """A human needs nothing else."""
    plan = decide(snapshot(TWO, acting("Approve"), metrics=BUSY), WANTED)
    assert plan.id in plan.message


def test_repair_scale_and_rollout_need_no_approval() -> None:
    """The spec orders them."""
    service = acting("Advisory")
    assert decide(snapshot((pod(0),), service), seasoned()).actions
    assert decide(snapshot((*TWO, pod(2)), service), seasoned()).actions
    assert decide(snapshot((pod(0), pod(1, revision="old")), service), seasoned()).actions


def test_equal_proposals_have_equal_ids_whenever_they_are_made() -> None:
    """Load, time and the order of the pods play no part; pods' epochs and uids do."""
    service = acting("Approve")
    state = snapshot(TWO, service, metrics=BUSY)
    ident = decide(state, WANTED).id
    later = replace(
        state, at=NOW + 50, metrics=metrics(waiting=77), pods=(pod(1, running=9, waiting=3), pod(0, kv_usage=0.3))
    )
    assert decide(later, WANTED).id == ident
    assert decide(replace(state, uid="another"), WANTED).id != ident
    assert decide(replace(state, pods=(pod(0), pod(1, epoch=1))), WANTED).id != ident
    assert decide(replace(state, pods=(pod(0), pod(1, uid="remade"))), WANTED).id != ident


@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        (seasoned(), reasons.EVIDENCE_SHORT),
        (seasoned(evidence_since={"Layout:DP": NOW - 14}), reasons.EVIDENCE_SHORT),
        (seasoned(evidence_since={"Layout:DP": NOW - 15}), reasons.QUEUEING),
        (seasoned(evidence_since={"Layout:TP": LONG_AGO}), reasons.EVIDENCE_SHORT),
        (replace(WANTED, started_at=NOW - 29), reasons.RESTART_HOLD),
        (replace(WANTED, last_transition_at=NOW - 1), reasons.COOLDOWN),
        (replace(WANTED, transition_at={"chat-0": NOW, "chat-1": NOW}), reasons.DWELL),
        (replace(WANTED, transition_at={"chat-1": NOW}), reasons.QUEUEING),
    ],
)
def test_a_shift_waits_for_evidence_and_rest(memory: Memory, reason: str) -> None:
    """Half a window of evidence; another pod goes where one has to dwell."""
    plan = decide(snapshot(TWO, metrics=BUSY), memory)
    assert plan.reason == reason
    assert bool(plan.actions) is (reason == reasons.QUEUEING)


def test_a_vetoed_wish_is_proposed() -> None:
    """Everyone can see what comes next; a wish without evidence is none."""
    held = decide(snapshot(TWO, metrics=BUSY), replace(WANTED, last_transition_at=NOW - 1))
    assert [each.pod for each in held.proposal if isinstance(each, Transit)] == ["chat-1"]
    assert decide(snapshot(TWO, metrics=BUSY), seasoned()).proposal == ()


def test_without_metrics_nothing_moves_and_the_hold_says_what_is_missing() -> None:
    """Neither layout nor role."""
    plan = decide(snapshot(pods(2, 2), split(2, 2), metrics=BLIND), WANTED)
    assert plan.actions == plan.proposal == ()
    assert plan.reason == reasons.METRICS_MISSING
    assert plan.message == "waiting of role Prefill is unknown: not queried"


@pytest.mark.parametrize(
    "state",
    [
        snapshot((pod(0),), spec(replicas=2), metrics=BLIND),
        snapshot((pod(0), pod(1, failed=True)), spec(replicas=2), metrics=BLIND),
        snapshot((*TWO, pod(2)), spec(replicas=2), metrics=BLIND),
        snapshot((pod(0), pod(1, revision="old")), spec(replicas=2), metrics=BLIND),
        snapshot(TWO, ordered(layout="DP"), metrics=BLIND),
    ],
    ids=["scale up", "repair", "scale down", "rollout", "override"],
)
def test_what_the_spec_orders_needs_no_metrics(state: Snapshot) -> None:
    """Prometheus may be away for as long as it likes."""
    assert decide(state, seasoned()).actions


@pytest.mark.parametrize("actuation", ["Advisory", "Approve", "Auto"])
def test_an_override_acts_under_every_actuation(actuation: str) -> None:
    """It is a human's hand already."""
    plan = decide(snapshot(TWO, ordered(service=acting(actuation), layout="DP")), seasoned())
    assert plan.actions == (Transit("chat-1", TransitionKind.LAYOUT, "DP", 0, reasons.OVERRIDE),)


def test_an_override_keeps_the_policy_from_undoing_it() -> None:
    """The load asks for TP, the human for DP."""
    wide = (pod(0, layout=Layout.DP), pod(1, layout=Layout.DP))
    memory = seasoned("Layout:TP")
    plan = decide(snapshot(wide, ordered(layout="DP")), memory)
    assert (plan.actions, plan.reason) == ((), reasons.OVERRIDE)
    expired = decide(snapshot(wide, ordered(-1, layout="DP")), memory)
    assert [each.to for each in expired.actions if isinstance(each, Transit)] == ["TP"]


def test_an_override_of_the_layout_leaves_roles_to_the_policy() -> None:
    """Each dimension on its own."""
    service = ordered(service=split(2, 2), layout="TP")
    plan = decide(snapshot(pods(2, 2), service, metrics=HOT_PREFILL), WANTED)
    assert plan.reason == reasons.PREFILL_PRESSURE


def test_an_override_of_the_role_stops_at_the_other_roles_floors() -> None:
    """All pods above them take the role, one at a time."""
    service = ordered(service=split(2, 2), role="Decode")
    first = decide(snapshot(pods(2, 2), service), seasoned())
    assert first.actions == (Transit("chat-1", TransitionKind.ROLE, "Decode", 0, reasons.OVERRIDE),)
    last = decide(snapshot(pods(1, 3), service), seasoned())
    assert (last.actions, last.reason) == ((), reasons.ROLE_FLOOR)


def test_a_time_without_zone_is_utc() -> None:
    """Whatever the machine's zone."""
    service = ordered(layout="DP")
    assert service.override is not None
    naive = service.override.model_copy(update={"until": datetime.fromtimestamp(NOW + 1, UTC).replace(tzinfo=None)})
    assert decide(snapshot(TWO, service.model_copy(update={"override": naive})), seasoned()).actions


@pytest.mark.parametrize(
    "state",
    [
        snapshot(TWO, metrics=BUSY),
        snapshot((*TWO, pod(2)), spec(replicas=2)),
        snapshot((pod(0), pod(1, revision="old"))),
        snapshot(TWO, ordered(layout="DP")),
    ],
    ids=["shift", "scale down", "rollout", "override"],
)
def test_the_hold_annotation_stops_whatever_takes_a_healthy_pod(state: Snapshot) -> None:
    """An override too: the annotation is the emergency stop."""
    plan = decide(replace(state, hold=True), WANTED)
    assert (plan.actions, plan.reason) == ((), reasons.HUMAN_HOLD)


def test_the_hold_annotation_does_not_stop_repair() -> None:
    """It disturbs nobody who is served."""
    views = (pod(0), pod(1, failed=True))
    assert decide(snapshot(views, spec(replicas=2), hold=True), seasoned()).actions


def test_scale_down_waits_after_a_restart() -> None:
    """Nothing shrinks on the first, perhaps stale, view."""
    plan = decide(snapshot((*TWO, pod(2)), spec(replicas=2)), Memory(NOW - 1))
    assert (plan.actions, plan.reason) == ((), reasons.RESTART_HOLD)


def test_scale_down_keeps_the_service_whole() -> None:
    """While the only other pods do not serve, the pod that does stays."""
    views = (pod(0), *(pod(ordinal, running=5, phase=PodPhase.UNKNOWN) for ordinal in (1, 2)))
    plan = decide(snapshot(views, spec(replicas=2)), seasoned())
    assert (plan.actions, plan.reason) == ((), reasons.CAPACITY_KEPT)
    assert decide(snapshot((pod(0),), spec(replicas=0)), seasoned()).actions


def test_the_first_reason_that_something_is_held_is_told() -> None:
    """Missing metrics of the role decision before the steady layout."""
    readings = both(metrics(Role.PREFILL, waiting=UNKNOWN), metrics(Role.DECODE))
    plan = decide(snapshot(pods(2, 2), split(2, 2), metrics=readings), seasoned())
    assert plan.reason == reasons.METRICS_MISSING
