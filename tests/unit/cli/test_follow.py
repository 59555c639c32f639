# SPDX-License-Identifier: Apache-2.0
"""When an order or a plan counts as done, when as failed, and what is told meanwhile."""

from collections.abc import Iterator
from typing import Any

import pytest

from gearshift.cli.errors import RefusedError, UnreachableError
from gearshift.cli.follow import Narrator, follow
from gearshift.cli.goals import OrderGoal, PlanGoal, ended
from gearshift.cli.service import Service
from tests.unit.cli.bodies import record, service

LAYOUT = {"layout": "DP", "until": "2026-12-01T12:30:00Z"}
ROLE = {"role": "Decode", "until": "2026-12-01T12:30:00Z"}
PODS = [
    {"name": f"chat-{n}", "role": "Prefill", "layout": "DP", "epoch": 1, "phase": "Serving", "ready": True}
    for n in range(2)
]
RUNNING = record(id="new-chat-0", pod="chat-0", result="Running", phase="Draining")
FAILED = record(id="new-chat-0", pod="chat-0", result="Failed", reason="SwitchFailed", message="rank 3 is gone")


def goal(override: dict[str, str], seen: frozenset[str] = frozenset()) -> OrderGoal:
    return OrderGoal("5e1f", 2, override, seen)


def ordered(override: dict[str, str], **status: Any) -> Service:
    return service(spec={"override": override}, status=status)


def roles(prefill: tuple[int, int], decode: tuple[int, int]) -> list[dict[str, Any]]:
    named = {"Prefill": prefill, "Decode": decode}
    return [{"name": name, "desired": desired, "ready": ready} for name, (desired, ready) in named.items()]


@pytest.mark.parametrize(
    ("status", "reached"),
    [
        ({}, False),  # one pod is DP, one is TP
        ({"pods": PODS}, True),
        ({"pods": PODS, "observedGeneration": 1}, False),
        ({"pods": PODS, "transition": RUNNING}, False),
        ({"pods": [], "podSummary": {"total": 70, "byLayout": {"TP": 1, "DP": 69}}}, False),
        ({"pods": [], "podSummary": {"total": 70, "byLayout": {"DP": 70}}}, True),
    ],
)
def test_a_layout_is_reached_when_every_pod_has_it(status: dict[str, Any], reached: bool) -> None:
    done = ordered(LAYOUT, transitionHistory=[], **status)
    assert goal(LAYOUT).reached(done) is reached


@pytest.mark.parametrize(
    ("replicas", "prefill", "decode", "reached"),
    [
        (2, (1, 1), (1, 1), True),  # Prefill is at its floor
        (3, (2, 2), (1, 1), False),
        (3, (1, 1), (2, 1), False),  # on its way
        (3, (1, 1), (2, 2), True),
        (4, (2, 2), (2, 2), True),  # Decode is at its ceiling
    ],
)
def test_a_role_is_reached_when_the_others_are_at_their_floor_or_it_is_at_its_ceiling(
    replicas: int, prefill: tuple[int, int], decode: tuple[int, int], reached: bool
) -> None:
    found = ordered(ROLE, replicas=replicas, roles=roles(prefill, decode))
    assert goal(ROLE).reached(found) is reached


def test_a_spec_with_fields_of_a_newer_version_can_be_followed() -> None:
    newer = [{"name": "Prefill", "replicas": 1, "colour": "red"}, {"name": "Decode", "replicas": 2}]
    found = service(spec={"override": ROLE, "roles": newer, "tempo": 3}, status={"roles": roles((1, 1), (2, 2))})
    assert goal(ROLE).reached(found)


def test_a_failed_transition_of_the_order_ends_the_wait() -> None:
    found = ordered(LAYOUT, transitionHistory=[FAILED, record()])
    with pytest.raises(RefusedError, match=r"Layout of chat-0: TP -> DP: Failed: SwitchFailed: rank 3 is gone"):
        goal(LAYOUT).reached(found)


def test_failures_from_before_the_order_and_of_other_kinds_do_not() -> None:
    before = ended(ordered(LAYOUT, transitionHistory=[FAILED]))
    other = record(id="x-chat-1", kind="Role", to="Decode", result="Failed")
    assert not goal(LAYOUT, before).reached(ordered(LAYOUT, transitionHistory=[FAILED, other]))
    again = {**FAILED, "startedAt": "2026-12-01T12:00:00Z"}  # the same plan on the same pod, once more
    with pytest.raises(RefusedError):
        goal(LAYOUT, before).reached(ordered(LAYOUT, transitionHistory=[again, FAILED]))


def test_an_order_that_somebody_changed_or_a_namesake_ends_the_wait() -> None:
    with pytest.raises(RefusedError, match=r"spec\.override has been changed or dropped"):
        goal(LAYOUT).reached(ordered(ROLE))
    with pytest.raises(RefusedError, match="deleted and made anew"):
        goal(LAYOUT).reached(service(metadata={"uid": "other"}))


def test_a_plan_is_done_when_its_transition_is_committed_or_it_waits_no_longer_and_nothing_moves() -> None:
    plan = PlanGoal("5e1f", "bbbbbbbbbbbb", frozenset())
    own = record(id="bbbbbbbbbbbb-chat-0", pod="chat-0")
    steady = {"plan": "s", "action": "Hold", "reason": "Steady", "at": "2026-12-01T12:00:00Z"}
    scaling = {
        "type": "Reconciling",
        "status": "True",
        "reason": "Scaling",
        "lastTransitionTime": "2026-12-01T12:00:00Z",
    }
    assert not plan.reached(service())
    assert plan.reached(service(status={"transitionHistory": [own]}))
    assert not plan.reached(service(status={"lastDecision": steady, "transition": RUNNING}))
    assert not plan.reached(service(status={"lastDecision": steady, "conditions": [scaling]}))
    assert plan.reached(service(status={"lastDecision": steady}))
    with pytest.raises(RefusedError, match="RolledBack"):
        plan.reached(service(status={"transitionHistory": [{**own, "result": "RolledBack"}]}))


def play(found: list[Service | UnreachableError], timeout_seconds: float = 60.0) -> tuple[list[str], Service | str]:
    """Follow an order of layout DP over what the API server answers, half a second apart; the last answer stays."""
    answers: Iterator[Service | UnreachableError] = iter([*found, *[found[-1]] * 1000])
    lines: list[str] = []
    time = [0.0]

    def read() -> Service:
        answer = next(answers)
        if isinstance(answer, UnreachableError):
            raise answer
        return answer

    def pause(seconds: float) -> None:
        time[0] += seconds

    seen = ended(service())
    narrator = Narrator(seen, 2)
    try:
        done = follow(read, goal(LAYOUT, seen), narrator, lines.append, timeout_seconds, lambda: time[0], pause)
    except RefusedError as problem:
        return lines, str(problem)
    return lines, done


def test_every_step_is_told_once() -> None:
    steps = [{**RUNNING, "phase": phase} for phase in ("Draining", "Draining", "Switching")]
    done = ordered(LAYOUT, pods=PODS, transitionHistory=[record(id="new-chat-0", pod="chat-0"), record()])
    found = [ordered(LAYOUT, observedGeneration=1), *(ordered(LAYOUT, transition=step) for step in steps), done]
    lines, result = play([found[0], UnreachableError("gone"), *found[1:]])
    assert result is done
    assert lines == [
        "Layout of chat-0: TP -> DP: Draining",
        "Layout of chat-0: TP -> DP: Switching",
        "Layout of chat-0: TP -> DP: Committed in 2.1s: epoch 3, 8 ranks, 1 probe token, 2 routers",
    ]


def test_a_wait_that_takes_too_long_tells_what_it_waited_for() -> None:
    held = {"plan": "p", "action": "Hold", "reason": "CapacityKept", "message": "one pod", "at": "2026-12-01T12:00:00Z"}
    for status, words in (
        ({"lastDecision": held}, "inferenceservice models/chat: CapacityKept: one pod"),
        ({"transition": RUNNING}, "inferenceservice models/chat: Layout of chat-0: TP -> DP is Draining"),
        ({"observedGeneration": 1}, "inferenceservice models/chat: no operator has seen generation 2 of the spec"),
    ):
        assert play([ordered(LAYOUT, **status)])[1] == f"not done after 60s: {words}"
    assert play([UnreachableError("no answer")])[1] == "not done after 60s: no answer"
