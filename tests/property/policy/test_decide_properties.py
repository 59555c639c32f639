# SPDX-License-Identifier: Apache-2.0
"""What holds for every plan, whatever the snapshot."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Actuation, Role, TransitionKind
from gearshift.policy.decide import decide
from gearshift.policy.fleet import Fleet, covers
from gearshift.policy.layout import want
from gearshift.policy.memory import fold
from gearshift.policy.override import active_override
from gearshift.policy.plan import Action, CreatePod, DeletePod, Hold, Memory, Plan, Transit
from gearshift.policy.snapshot import Metrics, Reading, Signal, Snapshot
from gearshift.policy.targets import ceiling, role_targets, total_target
from tests.property.policy.strategies import memories, metric_sets, snapshots, specs

EXAMPLES = settings(max_examples=100, deadline=None)
Invariant = Callable[[Snapshot, Memory], None]
INVARIANTS: list[Invariant] = []


def invariant(check: Invariant) -> Invariant:
    """Have `test_invariants` check it on every snapshot that it draws."""
    INVARIANTS.append(check)
    return check


@settings(max_examples=400, deadline=None)
@given(snapshots(), memories())
def test_invariants(snapshot: Snapshot, memory: Memory) -> None:
    """All of them on the same draws: drawing costs more than deciding."""
    for check in INVARIANTS:
        check(snapshot, memory)


def transits(plan: Plan) -> list[Transit]:
    """Transitions that act."""
    return [action for action in plan.actions if isinstance(action, Transit)]


def proposed(plan: Plan) -> list[Transit]:
    """Transitions that wait for a human."""
    return [action for action in plan.proposal if isinstance(action, Transit)]


def disruptive(action: Action, fleet: Fleet) -> bool:
    """Whether it takes a pod that serves out of service."""
    serving = {pod.name for pod in fleet.serving}
    return (isinstance(action, DeletePod) and action.name in serving) or isinstance(action, Transit)


@invariant
def a_plan_acts_or_says_why_not(snapshot: Snapshot, memory: Memory) -> None:
    """Never neither, never both; and always with a reason."""
    plan = decide(snapshot, memory)
    assert bool(plan.actions) is (plan.hold is None)
    assert plan.reason
    assert not (plan.actions and plan.proposal)
    assert all(len(key) <= 253 and len(value) <= 253 for key, value in plan.inputs.items())
    assert len(plan.inputs) <= 32


@invariant
def at_most_one_disruptive_action(snapshot: Snapshot, memory: Memory) -> None:
    """One pod at a time leaves the service."""
    fleet = Fleet.of(snapshot)
    assert sum(disruptive(action, fleet) for action in decide(snapshot, memory).actions) <= 1


@EXAMPLES
@given(snapshots(), memories(), st.randoms())
def test_the_order_of_pods_does_not_matter(snapshot: Snapshot, memory: Memory, random: Random) -> None:
    """A list from the API server has none."""
    shuffled = list(snapshot.pods)
    random.shuffle(shuffled)
    assert decide(replace(snapshot, pods=tuple(shuffled)), memory) == decide(snapshot, memory)
    assert fold(memory, replace(snapshot, pods=tuple(shuffled))) == fold(memory, snapshot)


@invariant
def folding_and_deciding_twice_gives_the_same(snapshot: Snapshot, memory: Memory) -> None:
    """A tick may be repeated."""
    once = fold(memory, snapshot)
    again = fold(once, snapshot)
    assert again == once
    assert decide(snapshot, again) == decide(snapshot, once)


@EXAMPLES
@given(snapshots(specs(actuation="Auto")), memories())
def test_bounds_of_roles_are_never_broken(snapshot: Snapshot, memory: Memory) -> None:
    """A flip leaves its donor at its floor or above, and its receiver at its ceiling or below."""
    fleet, plan = Fleet.of(snapshot), decide(snapshot, memory)
    for transit in transits(plan):
        if transit.kind is TransitionKind.ROLE:
            donor = snapshot.spec.role(next(pod.role for pod in fleet.live if pod.name == transit.pod))
            receiver = snapshot.spec.role(Role(transit.to))
            assert receiver is not None
            assert donor is None or fleet.roles.get(donor.name, 0) - 1 >= donor.floor
            assert fleet.roles.get(receiver.name, 0) + 1 <= ceiling(receiver, len(fleet.live))


@invariant
def only_allowed_layouts_are_ordered_from_pods_that_can_take_them(snapshot: Snapshot, memory: Memory) -> None:
    """And only from a pod that serves, with its present epoch."""
    fleet, plan = Fleet.of(snapshot), decide(snapshot, memory)
    for transit in (*transits(plan), *proposed(plan)):
        pod = next(pod for pod in fleet.serving if pod.name == transit.pod)
        assert transit.expected_epoch == pod.epoch
        if transit.kind is TransitionKind.LAYOUT:
            assert transit.to in snapshot.spec.parallelism.layouts
            assert transit.to in pod.layouts
            assert transit.to != pod.layout


@invariant
def the_number_of_pods_goes_to_the_target_and_not_beyond(snapshot: Snapshot, memory: Memory) -> None:
    """Neither by creating nor by deleting."""
    fleet, plan = Fleet.of(snapshot), decide(snapshot, memory)
    target = total_target(snapshot.spec) if plan.pods is None else plan.pods
    live = {pod.name for pod in fleet.live}
    created = [action for action in plan.actions if isinstance(action, CreatePod)]
    deleted = [action for action in plan.actions if isinstance(action, DeletePod) and action.name in live]
    assert not created or len(live) + len(created) <= target
    if any(action.reason == reasons.SCALE_DOWN for action in deleted):
        assert len(live) - len(deleted) >= target
    assert len({action.ordinal for action in created} | {pod.ordinal for pod in snapshot.pods}) == len(created) + len(
        snapshot.pods
    )


@invariant
def a_service_that_serves_goes_on_serving(snapshot: Snapshot, memory: Memory) -> None:
    """Unless a human asks for nothing, or one pod stands for its whole role and comes back in place."""
    fleet, plan = Fleet.of(snapshot), decide(snapshot, memory)
    out = {action.name for action in plan.actions if isinstance(action, DeletePod)}
    out |= {transit.pod for transit in transits(plan)}
    if not covers(fleet.serving_roles) or not out & {pod.name for pod in fleet.serving}:
        return
    left = covers(pod.role for pod in fleet.serving if pod.name not in out)
    whole_roles = all(fleet.roles[pod.role] == 1 for pod in fleet.live if pod.name in out)
    alone = len(fleet.live) <= len(out)
    assert left or whole_roles or alone or plan.reason == reasons.ROLLOUT or total_target(snapshot.spec) == 0


@EXAMPLES
@given(snapshots(readings=st.just(Metrics())), memories())
def test_without_metrics_only_orders_move_pods(snapshot: Snapshot, memory: Memory) -> None:
    """An override, or a floor or ceiling of the spec."""
    plan = decide(snapshot, memory)
    for transit in (*transits(plan), *proposed(plan)):
        assert transit.reason in (reasons.OVERRIDE, reasons.ROLE_BOUNDS)


@invariant
def a_transition_of_the_policy_has_the_readings_it_needs(snapshot: Snapshot, memory: Memory) -> None:
    """One unknown signal of the decision is enough to keep still."""
    for transit in transits(decide(snapshot, memory)):
        if transit.reason in (reasons.OVERRIDE, reasons.ROLE_BOUNDS):
            continue
        split = {role for role in (Role.PREFILL, Role.DECODE) if Fleet.of(snapshot).serving_roles[role]}
        scopes = (None,) if transit.kind is TransitionKind.LAYOUT else split
        for signal, scope in snapshot.metrics.readings:
            if scope in scopes and signal is Signal.WAITING:
                assert snapshot.metrics.value(signal, scope) is not None


@invariant
def a_human_has_the_last_word(snapshot: Snapshot, memory: Memory) -> None:
    """Hold, Advisory and an approval that is not given keep the policy's hands still."""
    plan = decide(snapshot, memory)
    if snapshot.hold:
        assert not transits(plan)
        assert all(
            action.reason in (reasons.POD_FAILED, reasons.NODE_LOST, reasons.POD_MISSING) for action in plan.actions
        )
    if snapshot.spec.policy.actuation is not Actuation.AUTO:
        assert all(transit.reason == reasons.OVERRIDE for transit in transits(plan))


@EXAMPLES
@given(snapshots(specs(actuation="Approve", overrides=False)), memories())
def test_an_approved_plan_is_the_proposed_one(snapshot: Snapshot, memory: Memory) -> None:
    """Nothing else acts in its name."""
    waiting = decide(snapshot, memory)
    approved = decide(replace(snapshot, approved=waiting.id), memory)
    assert approved.id == waiting.id
    if waiting.reason == reasons.AWAITING_APPROVAL:
        assert approved.actions == waiting.proposal
    else:
        assert approved.actions == waiting.actions


@invariant
def an_active_override_is_never_undone(snapshot: Snapshot, memory: Memory) -> None:
    """No transition away from what it orders."""
    override = active_override(snapshot)
    plan = decide(snapshot, memory)
    for transit in transits(plan):
        if override is not None and override.layout is not None and transit.kind is TransitionKind.LAYOUT:
            assert transit.to == override.layout
        if override is not None and override.role is not None and transit.kind is TransitionKind.ROLE:
            assert transit.to == override.role


@EXAMPLES
@given(specs())
def test_targets_keep_bounds(spec: InferenceServiceSpec) -> None:
    """Floors, ceilings, and no more pods than asked for."""
    targets = role_targets(spec)
    total = spec.replicas if spec.replicas is not None else sum(role.replicas for role in spec.roles)
    assert sum(targets.values()) <= total
    for role in spec.roles:
        assert targets[role.name] <= ceiling(role, total)
        assert total == 0 or targets[role.name] >= role.floor


@EXAMPLES
@given(snapshots(readings=metric_sets(unknown=False)), memories(), st.floats(1, 50))
def test_more_queue_never_asks_for_the_latency_layout(snapshot: Snapshot, memory: Memory, factor: float) -> None:
    """Monotone in demand: from light over as it is to busy, and not back."""
    readings = dict(snapshot.metrics.readings)
    before = readings[Signal.WAITING, None]
    assert before.value is not None
    readings[Signal.WAITING, None] = Reading(before.value * factor, before.at, 1)
    less = want(snapshot, memory, Fleet.of(snapshot))
    busier = replace(snapshot, metrics=Metrics(readings))
    more = want(busier, memory, Fleet.of(busier))
    if isinstance(less, Hold) or isinstance(more, Hold):
        assert isinstance(less, Hold)
        assert isinstance(more, Hold)
        return
    rank = {reasons.LIGHT_LOAD: 0, reasons.QUEUEING: 2}
    assert rank.get(less.reason, 1) <= rank.get(more.reason, 1)
