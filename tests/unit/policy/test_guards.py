# SPDX-License-Identifier: Apache-2.0
"""What may veto a transition, guard by guard, and in which order."""

from typing import Any

import pytest

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind, TransitionResult
from gearshift.policy import guards, tuning
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Memory, Move, Transit
from gearshift.policy.snapshot import Ended, InFlight, PodView, Snapshot
from gearshift.policy.verdict import Source
from tests.unit.policy.build import NOW, pod, pods, seasoned, snapshot, spec, split, starting

LAYOUT = Transit("chat-0", TransitionKind.LAYOUT, "DP", 0, "Test")
FLIGHT = InFlight("t", "chat-1", TransitionKind.LAYOUT, "DP", NOW - 1)


def to(role: Role, name: str = "chat-0") -> Transit:
    """A flip."""
    return Transit(name, TransitionKind.ROLE, role.value, 0, "Test")


def context(state: Snapshot, memory: Memory | None = None) -> guards.Context:
    """Context of a decision."""
    return guards.Context.of(state, memory or seasoned(), Fleet.of(state))


def vetoed(guard: guards.Guard, state: Snapshot, transit: Transit = LAYOUT, memory: Memory | None = None) -> str | None:
    """Reason of the guard's veto."""
    hold = guard(context(state, memory), transit)
    return None if hold is None else hold.reason


TWO = (pod(0), pod(1))
PREFILL, DECODE, UNIFIED = Role.PREFILL, Role.DECODE, Role.UNIFIED


def test_human_hold() -> None:
    """The annotation decides."""
    assert vetoed(guards.human_hold, snapshot(TWO, hold=True)) == reasons.HUMAN_HOLD
    assert vetoed(guards.human_hold, snapshot(TWO)) is None


def test_rollout_in_progress() -> None:
    """One live pod of an older spec is enough; one that is going is not."""
    assert vetoed(guards.rollout_in_progress, snapshot((pod(0), pod(1, revision="old")))) == reasons.ROLLOUT_IN_PROGRESS
    assert vetoed(guards.rollout_in_progress, snapshot((pod(0), pod(1, revision="old", deleting=True)))) is None


@pytest.mark.parametrize(
    "phase",
    [PodPhase.DRAINING, PodPhase.SWITCHING, PodPhase.VERIFYING, PodPhase.PUBLISHING, PodPhase.ROLLING_BACK],
)
def test_a_pod_in_transition_vetoes(phase: PodPhase) -> None:
    """Also when this operator has not ordered it."""
    state = snapshot((pod(0), pod(1, phase=phase)))
    assert vetoed(guards.transition_in_flight, state) == reasons.TRANSITION_IN_FLIGHT


def test_an_ordered_transition_vetoes() -> None:
    """Also before its pod says so."""
    assert vetoed(guards.transition_in_flight, snapshot(TWO, in_flight=(FLIGHT,))) == reasons.TRANSITION_IN_FLIGHT
    assert vetoed(guards.transition_in_flight, snapshot(TWO)) is None


@pytest.mark.parametrize(("seconds", "reason"), [(0, reasons.RESTART_HOLD), (29.9, reasons.RESTART_HOLD), (30, None)])
def test_restart_hold(seconds: float, reason: str | None) -> None:
    """One window."""
    assert vetoed(guards.restart_hold, snapshot(TWO), memory=Memory(NOW - seconds)) == reason


@pytest.mark.parametrize(("seconds", "reason"), [(29, reasons.DWELL), (30, None)])
def test_dwell_counts_from_the_last_transition_or_from_when_it_serves(seconds: float, reason: str | None) -> None:
    """Whichever is later."""
    stamped = seasoned(transition_at={"chat-0": NOW - seconds})
    assert vetoed(guards.dwell, snapshot(TWO), memory=stamped) == reason
    assert vetoed(guards.dwell, snapshot((pod(0, since=NOW - seconds), pod(1)))) == reason
    assert vetoed(guards.dwell, snapshot((pod(0), pod(1, since=NOW)))) is None


@pytest.mark.parametrize(("seconds", "reason"), [(None, None), (14, reasons.COOLDOWN), (15, None)])
def test_cooldown(seconds: float | None, reason: str | None) -> None:
    """Of the whole service."""
    last = None if seconds is None else NOW - seconds
    assert vetoed(guards.cooldown, snapshot(TWO), memory=seasoned(last_transition_at=last)) == reason


def test_a_clock_that_is_ahead_puts_nothing_into_the_future() -> None:
    """The time of a transition's end is its pod's."""
    hold = guards.cooldown(context(snapshot(TWO), seasoned(last_transition_at=NOW + 2)), LAYOUT)
    assert hold is not None
    assert "0 s ago" in hold.message


def bounded(**bounds: Any) -> InferenceServiceSpec:
    """Roles split with bounds on prefill."""
    return spec(roles=[{"name": "Prefill", "replicas": 2, **bounds}, {"name": "Decode", "replicas": 2}])


@pytest.mark.parametrize(
    ("service", "views", "reason"),
    [
        (bounded(min=2), pods(2, 2), reasons.ROLE_FLOOR),
        (bounded(min=1), pods(2, 2), None),
        (bounded(), pods(1, 2), reasons.ROLE_FLOOR),
        (bounded(min=0), pods(1, 2), None),
    ],
)
def test_role_floor(service: InferenceServiceSpec, views: tuple[PodView, ...], reason: str | None) -> None:
    """Live pods count; a floor that is left out is 1."""
    assert vetoed(guards.role_floor, snapshot(views, service), to(Role.DECODE)) == reason
    assert vetoed(guards.role_floor, snapshot(views, service), LAYOUT) is None


@pytest.mark.parametrize(
    ("service", "receiver", "reason"),
    [
        (bounded(max=2), Role.PREFILL, reasons.ROLE_CEILING),
        (bounded(max=3), Role.PREFILL, None),
        (bounded(), Role.PREFILL, None),
        (bounded(), Role.UNIFIED, reasons.ROLE_CEILING),
    ],
)
def test_role_ceiling(service: InferenceServiceSpec, receiver: Role, reason: str | None) -> None:
    """A role that the spec does not list takes nobody."""
    state = snapshot(pods(2, 2), service)
    assert vetoed(guards.role_ceiling, state, to(receiver, "chat-3")) == reason


def ended(ago: float, result: TransitionResult = TransitionResult.ROLLED_BACK, **changes: Any) -> Ended:
    """A change of chat-0 to DP that ended some seconds ago."""
    fields = {"pod": "chat-0", "kind": TransitionKind.LAYOUT, "from_": "TP", "to": "DP", **changes}
    return Ended(**fields, result=result, at=NOW - ago)


COMMITTED, FAILED = TransitionResult.COMMITTED, TransitionResult.FAILED


@pytest.mark.parametrize(
    ("took", "kept", "reason"),
    [
        ((), 0, None),
        ((4.0,), 19, reasons.TRANSITION_COST),
        ((4.0,), 20, None),
        ((0.1, 4.0, 60.0), 19, reasons.TRANSITION_COST),
        ((0.1, 4.0, 60.0), 20, None),
    ],
)
def test_transition_cost(took: tuple[float, ...], kept: float, reason: str | None) -> None:
    """Five times the median of what committed; failures and other kinds don't count."""
    past = [ended(500 + n, COMMITTED, seconds=seconds) for n, seconds in enumerate(took)]
    past += [ended(400, seconds=900.0), ended(401, COMMITTED, kind=TransitionKind.ROLE, seconds=900.0)]
    state = snapshot((pod(0, since=NOW - kept), pod(1)), ended=tuple(past))
    assert vetoed(guards.transition_cost, state) == reason


@pytest.mark.parametrize(
    ("past", "reason"),
    [
        ((), None),
        ((ended(29),), reasons.BACKOFF),
        ((ended(30),), None),
        ((ended(29, FAILED),), reasons.BACKOFF),
        ((ended(59), ended(100)), reasons.BACKOFF),
        ((ended(60), ended(100)), None),
        ((ended(119), ended(200), ended(300)), reasons.BACKOFF),
        ((ended(59), ended(100, COMMITTED), ended(200), ended(300)), None),
        ((ended(1, COMMITTED), ended(2)), None),
        ((ended(1, kind=TransitionKind.ROLE, from_="Prefill", to="Decode"),), None),
        (tuple(ended(tuning.BACKOFF_MOST_SECONDS - 1 + n) for n in range(10)), reasons.BACKOFF),
        (tuple(ended(tuning.BACKOFF_MOST_SECONDS + n) for n in range(10)), None),
    ],
)
def test_backoff_doubles_with_each_failure_since_the_last_commit(past: tuple[Ended, ...], reason: str | None) -> None:
    """Cooldown 15 s: 30, 60, 120 s, up to a bound; the order in which failures are listed does not matter."""
    assert vetoed(guards.backoff, snapshot(TWO, ended=past)) == reason
    assert vetoed(guards.backoff, snapshot(TWO, ended=past[::-1])) == reason


@pytest.mark.parametrize(
    ("past", "created", "reason"),
    [
        (ended(900, FAILED, retryable=False), 1000, reasons.TERMINAL_FAILURE),
        (ended(900, FAILED, retryable=False), 800, None),
        (ended(900, FAILED), 1000, None),
        (ended(900, FAILED, retryable=False, pod="chat-1"), 1000, None),
        (ended(900, FAILED, retryable=False, to="Shift"), 1000, None),
        (ended(900, COMMITTED, retryable=False), 1000, None),
    ],
)
def test_what_failed_for_good_is_not_tried_again_on_that_pod(past: Ended, created: float, reason: str | None) -> None:
    """A pod of the same name that was made after the failure is another one."""
    state = snapshot((pod(0, created_at=NOW - created), pod(1)), ended=(past,))
    assert vetoed(guards.terminal_failure, state) == reason


def moved(ago: float, pod_name: str = "chat-1", from_: str = "DP", to: str = "TP", **changes: Any) -> Move:
    """A pod came out of a change some seconds ago."""
    fields = {"pod": pod_name, "kind": TransitionKind.LAYOUT, "from_": from_, "to": to, **changes}
    return Move(at=NOW - ago, **fields)


@pytest.mark.parametrize(
    ("move", "wanted_for", "reason"),
    [
        (moved(119), 200, reasons.UNDOES),  # wanted before the move ended: old evidence
        (moved(119), None, reasons.UNDOES),  # not wanted by load at all
        (moved(60), 29, reasons.UNDOES),  # new evidence, but less than a window of it
        (moved(60), 30, None),
        (moved(120), 200, None),  # long ago
        (moved(10, from_="TP", to="DP"), 200, None),  # the same direction
        (moved(10, kind=TransitionKind.ROLE, from_="Decode", to="Prefill"), 200, None),
        (moved(10, pod_name="chat-0"), 200, reasons.UNDOES),
    ],
)
def test_no_change_undoes_a_recent_one_without_new_evidence(
    move: Move, wanted_for: float | None, reason: str | None
) -> None:
    """Whichever pod it was."""
    wants = {} if wanted_for is None else {"Layout:DP": NOW - wanted_for}
    memory = seasoned(moves=(move,), evidence_since=wants)
    assert vetoed(guards.undoing, snapshot(TWO), memory=memory) == reason


def test_a_flip_back_needs_new_evidence_too() -> None:
    move = moved(60, kind=TransitionKind.ROLE, from_="Decode", to="Prefill")
    state = snapshot(pods(2, 2), split(2, 2))
    assert vetoed(guards.undoing, state, to(DECODE), seasoned("Role:Decode", moves=(move,))) == reasons.UNDOES
    assert vetoed(guards.undoing, state, to(PREFILL, "chat-3"), seasoned("Role:Prefill", moves=(move,))) is None


@pytest.mark.parametrize(
    ("most", "moves", "failures", "reason"),
    [
        (3, 2, 0, None), (3, 3, 0, reasons.HOURLY_LIMIT), (3, 2, 1, reasons.HOURLY_LIMIT), (None, 11, 0, None),
        (None, 12, 0, reasons.HOURLY_LIMIT),
    ],
)  # fmt: skip
def test_transitions_per_hour(most: int | None, moves: int, failures: int, reason: str | None) -> None:
    """Failed ones count; those of an hour ago do not."""
    policy = {} if most is None else {"maxTransitionsPerHour": most}
    memory = seasoned(moves=(moved(3600), *(moved(3599 - n) for n in range(moves))))
    past = (ended(3600), *(ended(3599 - n) for n in range(failures)))
    state = snapshot(TWO, spec(replicas=2, policy=policy), ended=past)
    assert vetoed(guards.hourly_limit, state, memory=memory) == reason


def test_a_large_service_may_change_more_often() -> None:
    memory = seasoned(moves=tuple(moved(3599 - n) for n in range(18)))
    assert vetoed(guards.hourly_limit, snapshot(tuple(pod(n) for n in range(3))), memory=memory) is not None
    assert vetoed(guards.hourly_limit, snapshot(tuple(pod(n) for n in range(4))), memory=memory) is None


def test_the_hold_says_why_it_was_set() -> None:
    hold = guards.human_hold(context(snapshot(TWO, hold=True, hold_note="incident 7")), LAYOUT)
    assert hold is not None
    assert hold.message == "the hold annotation is set: incident 7"


@pytest.mark.parametrize(
    ("views", "transit", "reason"),
    [
        ((pod(0), pod(1)), LAYOUT, None),
        ((pod(0),), LAYOUT, None),
        ((pod(0), starting(1)), LAYOUT, reasons.CAPACITY_KEPT),
        ((pod(0), pod(1, phase=PodPhase.UNKNOWN)), LAYOUT, reasons.CAPACITY_KEPT),
        (pods(1, 1), LAYOUT, None),
        (pods(2, 1), LAYOUT, None),
        ((pod(0, PREFILL), pod(1, PREFILL, ready=False), pod(2, DECODE)), LAYOUT, reasons.CAPACITY_KEPT),
        ((pod(0, PREFILL), pod(1, PREFILL, ready=False), pod(2, DECODE), pod(3)), LAYOUT, None),
        (pods(2, 1), to(DECODE), None),
        (pods(1, 1), to(DECODE), None),
        (pods(1, 1), to(UNIFIED), None),
        ((pod(0), pod(1, PREFILL)), to(PREFILL), None),
        ((pod(0), pod(1, PREFILL)), to(DECODE), None),
        ((pod(0), pod(1, PREFILL), pod(2, DECODE)), to(DECODE), None),
    ],
)
def test_capacity_kept(views: tuple[PodView, ...], transit: Transit, reason: str | None) -> None:
    """The truth table of `capacity_kept`."""
    assert vetoed(guards.capacity_kept, snapshot(views), transit) == reason


def test_the_first_veto_wins_in_the_order_of_the_chain() -> None:
    """Everything is wrong at once; what is repaired step by step uncovers the next veto."""
    state = snapshot(
        (pod(0, PREFILL, since=NOW - 1), pod(1, DECODE, revision="old")),
        split(1, 1),
        hold=True,
        in_flight=(FLIGHT,),
    )
    memory = Memory(NOW - 1, last_transition_at=NOW - 1)
    found = []
    for guard in guards.CHAINS[Source.POLICY]:
        hold = guard(context(state, memory), to(DECODE))
        found.append(None if hold is None else hold.reason)
    assert found == [
        reasons.HUMAN_HOLD, reasons.ROLLOUT_IN_PROGRESS, reasons.TRANSITION_IN_FLIGHT, reasons.RESTART_HOLD,
        reasons.DWELL, None, reasons.COOLDOWN, None, None, None, None, reasons.ROLE_FLOOR, None, None,
    ]  # fmt: skip
    first = guards.veto(context(state, memory), to(DECODE), Source.POLICY)
    assert first is not None
    assert first.reason == reasons.HUMAN_HOLD


def test_an_override_waits_for_neither_dwell_nor_cooldown() -> None:
    """A human has decided; what protects requests still holds."""
    state = snapshot((pod(0, since=NOW), pod(1, since=NOW)))
    memory = Memory(NOW, last_transition_at=NOW)
    assert guards.veto(context(state, memory), LAYOUT, Source.OVERRIDE) is None
    assert guards.veto(context(state, memory), LAYOUT, Source.POLICY) is not None
    assert pod(0).layout is Layout.TP
