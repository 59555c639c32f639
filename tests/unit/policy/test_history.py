# SPDX-License-Identifier: Apache-2.0
"""Records of transitions, merged from what sidecars say and what status knows."""

import pytest

from gearshift.api.v1alpha1.status import MAX_HISTORY, InferenceServiceStatus
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind, TransitionResult
from gearshift.api.wire import PodState, Proof, TransitionStatus
from gearshift.policy.history import ended as seen
from gearshift.policy.history import merged, record


def transition(ident: str, started: float, finished: float | None = None) -> TransitionStatus:
    """What a sidecar says of one transition."""
    proof = Proof(
        epoch_before=0,
        epoch_after=1,
        ranks=8,
        expected_ranks=8,
        engine="e",
        probe_tokens=3,
        probe_seconds=0.1,
        routers=2,
    )
    return TransitionStatus(
        id=ident,
        kind=TransitionKind.LAYOUT,
        from_="TP",
        to="DP",
        phase=PodPhase.DRAINING if finished is None else PodPhase.SERVING,
        result=TransitionResult.RUNNING if finished is None else TransitionResult.COMMITTED,
        started_at=started,
        finished_at=finished,
        proof=None if finished is None else proof,
    )


def state(pod: str, told: TransitionStatus | None) -> PodState:
    """A sidecar's answer."""
    return PodState(
        pod=pod, uid=f"uid-{pod}", sequence=1, epoch=0, phase=PodPhase.SERVING, admitting=True, role=Role.UNIFIED,
        layout=Layout.TP, layouts=[Layout.TP], engine_port=8000, model="m", transition=told,
    )  # fmt: skip


def test_a_record_carries_duration_and_proof() -> None:
    told = record("a-0", transition("t", 100.25, 103.75))
    assert told.duration_milliseconds == 3500
    assert told.proof is not None
    assert told.proof.dump() == {"epoch": 1, "ranks": 8, "probeTokens": 3, "routers": 2}


def test_running_and_ended_are_told_apart() -> None:
    states = [state("a-0", transition("one", 100.0)), state("a-1", transition("two", 90.0, 95.0)), state("a-2", None)]
    running, ended = merged(InferenceServiceStatus(), states, {"a-0": True, "a-1": True, "a-2": True}, 101.0)
    assert running is not None
    assert running.id == "one"
    assert [item.id for item in ended] == ["two"]


def test_what_ended_while_nobody_looked_is_found_and_told_once() -> None:
    before = InferenceServiceStatus(transition=record("a-0", transition("one", 100.0)))
    states = [state("a-0", transition("one", 100.0, 110.0))]
    running, ended = merged(before, states, {"a-0": True}, 200.0)
    assert running is None
    assert [(item.id, item.result) for item in ended] == [("one", TransitionResult.COMMITTED)]
    after = InferenceServiceStatus(transition_history=ended)
    assert merged(after, states, {"a-0": True}, 201.0) == (None, ended)


def test_a_silent_pod_keeps_its_transition_and_a_gone_one_loses_it() -> None:
    before = InferenceServiceStatus(transition=record("a-0", transition("one", 100.0)))
    running, ended = merged(before, [], {"a-0": True}, 120.0)
    assert (running, ended) == (before.transition, [])
    running, ended = merged(before, [], {}, 120.0)
    assert running is None
    assert [(item.id, item.result, item.reason) for item in ended] == [("one", TransitionResult.FAILED, "PodLost")]


def test_the_newest_ten_stay_newest_first() -> None:
    known = [record(f"a-{n}", transition(f"t{n}", float(n), float(n) + 1)) for n in range(8)]
    states = [state(f"b-{n}", transition(f"u{n}", 100.0 + n, 200.0 + n)) for n in range(6)]
    _, ended = merged(InferenceServiceStatus(transition_history=known), states, {}, 300.0)
    assert len(ended) == MAX_HISTORY
    assert [item.id for item in ended] == ["u5", "u4", "u3", "u2", "u1", "u0", "t7", "t6", "t5", "t4"]


@pytest.mark.parametrize(
    ("result", "told", "kept", "retryable"),
    [
        (TransitionResult.RUNNING, True, None, True),
        (TransitionResult.COMMITTED, True, None, True),
        (TransitionResult.ROLLED_BACK, True, True, True),
        (TransitionResult.ROLLED_BACK, False, False, False),
        (TransitionResult.FAILED, True, True, True),
        (TransitionResult.FAILED, False, False, False),
    ],
)
def test_a_failure_may_be_retried_or_not_as_the_sidecar_says(
    result: TransitionResult, told: bool, kept: bool | None, retryable: bool
) -> None:
    """Status tells it of failures only; a status of an earlier version, that does not tell it, allows another try."""
    status = transition("t", 100.0, 110.0).model_copy(update={"result": result, "retryable": told})
    written = record("a-0", status)
    assert written.retryable is kept
    (found,) = seen([written])
    assert (found.retryable, found.at) == (retryable, 110.0)
    assert found.failed == (result in (TransitionResult.ROLLED_BACK, TransitionResult.FAILED))


def test_the_transition_of_a_lost_pod_may_be_retried_on_another() -> None:
    before = InferenceServiceStatus(transition=record("a-0", transition("one", 100.0)))
    _, ended = merged(before, [], {}, 120.0)
    assert [(item.reason, item.retryable) for item in ended] == [("PodLost", True)]


def test_a_transition_that_takes_too_long_has_failed_until_its_pod_says_otherwise() -> None:
    before = InferenceServiceStatus(transition=record("a-0", transition("one", 100.0)))
    for states in ([], [state("a-0", transition("one", 100.0))]):
        assert merged(before, states, {"a-0": True}, 160.0, 60.0)[0] is not None
        running, ended = merged(before, states, {"a-0": True}, 161.0, 60.0)
        assert running is None
        assert [(item.id, item.reason) for item in ended] == [("one", "TransitionOverdue")]
        later = InferenceServiceStatus(transition_history=ended)
        assert merged(later, states, {"a-0": True}, 170.0, 60.0) == (None, ended)
    _, ended = merged(later, [state("a-0", transition("one", 100.0, 180.0))], {"a-0": True}, 181.0, 60.0)
    assert [(item.id, item.result) for item in ended] == [("one", TransitionResult.COMMITTED)]


@pytest.mark.parametrize(
    ("told", "reasons"),
    [
        (None, ["TransitionForgotten"]),
        (transition("older", 90.0, 95.0), ["TransitionForgotten", "Verified"]),
        (transition("younger", 110.0, 115.0), ["Verified"]),
    ],
)
def test_a_transition_that_its_pod_knows_nothing_of_does_not_run(
    told: TransitionStatus | None, reasons: list[str]
) -> None:
    before = InferenceServiceStatus(transition=record("a-0", transition("one", 100.0)))
    told = None if told is None else told.model_copy(update={"reason": "Verified"})
    running, ended = merged(before, [state("a-0", told)], {"a-0": True}, 120.0)
    assert running is None
    assert [item.reason for item in ended] == reasons
