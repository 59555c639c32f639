# SPDX-License-Identifier: Apache-2.0
"""What guards, budgets, holds and approvals keep, whatever the snapshot and whatever was before."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gearshift.api import reasons
from gearshift.api.vocabulary import Layout, Role, TransitionKind, TransitionResult
from gearshift.policy import tuning
from gearshift.policy.decide import decide
from gearshift.policy.fleet import Fleet
from gearshift.policy.memory import fold
from gearshift.policy.plan import CreatePod, Memory, Move, Plan, Transit
from gearshift.policy.snapshot import Ended, NamespaceBudget, Snapshot
from tests.property.policy.strategies import AGES, NOW, memories, snapshots, specs

EXAMPLES = settings(max_examples=150, deadline=None)
KINDS: dict[TransitionKind, list[str]] = {
    TransitionKind.LAYOUT: [layout.value for layout in Layout],
    TransitionKind.ROLE: [role.value for role in Role],
}
ORDERED = (reasons.OVERRIDE, reasons.SHIFT_THRESHOLD)
"""Reasons of transitions that a human or the spec orders."""


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, TransitionKind, str, str]:
    """Pod, kind, from and to of some change."""
    kind = draw(st.sampled_from(TransitionKind))
    before, after = draw(st.permutations(KINDS[kind]))[:2]
    return f"s-{draw(st.integers(0, 9))}", kind, before, after


def ended(at: float, change: tuple[str, TransitionKind, str, str], result: TransitionResult, retryable: bool) -> Ended:
    """A change that ended ``at`` seconds ago."""
    pod, kind, before, after = change
    return Ended(pod, kind, before, after, result, NOW - at, retryable)


MOVES = st.lists(st.builds(lambda at, change: Move(NOW - at, *change), AGES, changes()), max_size=4).map(tuple)
ENDED = st.lists(st.builds(ended, AGES, changes(), st.sampled_from(TransitionResult), st.booleans()), max_size=4).map(
    tuple
)


def transits(plan: Plan) -> list[Transit]:
    """Transitions that act."""
    return [action for action in plan.actions if isinstance(action, Transit)]


@EXAMPLES
@given(snapshots(), memories(), st.integers(0, 80), st.integers(0, 80))
def test_no_plan_adds_what_a_budget_has_no_room_for(
    snapshot: Snapshot, memory: Memory, limit: int, others: int
) -> None:
    policy = snapshot.spec.policy.model_copy(update={"max_accelerators": limit})
    of_all = NamespaceBudget(64, others)
    given_ = replace(snapshot, spec=snapshot.spec.model_copy(update={"policy": policy}), namespace_budget=of_all)
    plan = decide(given_, fold(memory, given_))
    added = sum(1 for action in plan.actions if isinstance(action, CreatePod))
    held = (len(given_.pods) + added) * given_.spec.pod.accelerators
    assert not added or (held <= limit and held + others <= of_all.limit)


@EXAMPLES
@given(snapshots(specs(actuation="Auto")), memories(), MOVES)
def test_nothing_recent_is_undone_on_old_evidence(snapshot: Snapshot, memory: Memory, moves: tuple[Move, ...]) -> None:
    folded = fold(replace(memory, moves=moves), snapshot)
    pods = {pod.name: pod for pod in Fleet.of(snapshot).live}
    for transit in transits(decide(snapshot, folded)):
        if transit.reason in (*ORDERED, reasons.ROLE_BOUNDS, reasons.BRIDGE_OVER):
            continue
        pod = pods[transit.pod]
        before = pod.layout.value if transit.kind is TransitionKind.LAYOUT else pod.role.value
        wanted = "Split" if before == Role.UNIFIED else transit.to
        since = folded.evidence_since[f"{transit.kind}:{wanted}"]
        for move in folded.moves:
            undoes = (move.kind, move.from_, move.to) == (transit.kind, transit.to, before)
            if undoes and snapshot.at - move.at < tuning.REVERSAL_SECONDS:
                assert since >= move.at


@EXAMPLES
@given(snapshots(), memories(), ENDED)
def test_what_failed_for_good_is_never_tried_again(
    snapshot: Snapshot, memory: Memory, ended: tuple[Ended, ...]
) -> None:
    given_ = replace(snapshot, ended=ended)
    created = {pod.name: pod.created_at for pod in snapshot.pods}
    for transit in transits(decide(given_, fold(memory, given_))):
        same = [each for each in ended if (each.pod, each.kind, each.to) == (transit.pod, transit.kind, transit.to)]
        assert all(each.retryable or not each.failed or each.at <= created[transit.pod] for each in same)


@EXAMPLES
@given(snapshots(), memories())
def test_a_hold_moves_and_takes_nothing_that_serves(snapshot: Snapshot, memory: Memory) -> None:
    given_ = replace(snapshot, hold=True)
    plan = decide(given_, fold(memory, given_))
    serving = {pod.name for pod in Fleet.of(given_).serving}
    assert not transits(plan)
    assert not any(getattr(action, "name", None) in serving for action in plan.actions)


@EXAMPLES
@given(snapshots(specs(actuation="Approve")), memories())
def test_an_approval_that_is_over_approves_nothing(snapshot: Snapshot, memory: Memory) -> None:
    waiting = decide(snapshot, fold(memory, snapshot))
    over = replace(snapshot, approved=waiting.id, approved_until=snapshot.at)
    assert decide(over, fold(memory, over)).actions == waiting.actions
