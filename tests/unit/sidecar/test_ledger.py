# SPDX-License-Identifier: Apache-2.0
"""How events change a pod's record, and walks over all of them."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearshift.api import reasons
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionResult
from gearshift.api.wire import Proof, TransitionRequest
from gearshift.sidecar.ledger import (
    HISTORY_LENGTH,
    Detail,
    Record,
    UnprovenCommitError,
    advance,
    new_record,
    restore,
    target_of,
    threshold_of,
)
from gearshift.sidecar.machine import IN_FLIGHT, STABLE, TABLE, Event, IllegalEventError

MakeRecord = Callable[..., Record]
MakeOrder = Callable[..., TransitionRequest]


def proof_for(record: Record) -> Proof:
    return Proof(
        epoch_before=record.epoch,
        epoch_after=record.epoch + 1,
        ranks=2,
        expected_ranks=2,
        engine="tp",
        probe_tokens=1,
        probe_seconds=0.1,
        routers=0,
    )


def run(record: Record, *events: Event, order: TransitionRequest | None = None) -> Record:
    for number, event in enumerate(events):
        proof = proof_for(record) if event is Event.VERIFIED else None
        record, _ = advance(record, event, record.since + 1 + number, Detail(order=order, proof=proof))
    return record


HAPPY = (Event.ORDERED, Event.DRAINED, Event.SWITCHED, Event.VERIFIED, Event.CONFIRMED)


def test_a_committed_layout_change(make_record: MakeRecord, make_order: MakeOrder) -> None:
    before = make_record()
    after = run(before, *HAPPY, order=make_order())
    assert (after.epoch, after.layout, after.role, after.admitting) == (5, Layout.DP, Role.UNIFIED, True)
    status = after.transition
    assert status is not None
    assert (status.from_, status.to, status.result, status.reason) == ("TP", "DP", "Committed", reasons.VERIFIED)
    assert status.phase is PodPhase.SERVING
    assert status.finished_at is not None
    assert set(status.seconds_by_phase) == {"Draining", "Switching", "Verifying", "Publishing"}
    assert after.order is None


def test_the_first_thing_that_routers_learn_is_that_nothing_is_admitted(
    make_record: MakeRecord, make_order: MakeOrder
) -> None:
    before = make_record()
    draining = run(before, Event.ORDERED, order=make_order())
    assert not draining.admitting
    assert draining.sequence == before.sequence + 1
    assert (draining.epoch, draining.layout) == (before.epoch, before.layout)


def test_a_drain_that_takes_too_long_leaves_everything_as_it_was(
    make_record: MakeRecord, make_order: MakeOrder
) -> None:
    draining = run(make_record(), Event.ORDERED, order=make_order())
    after, _ = advance(draining, Event.DRAIN_TIMED_OUT, 99.0, Detail(reasons.DRAIN_TIMEOUT, "router r owes 3"))
    assert (after.phase, after.admitting, after.epoch, after.layout) == (PodPhase.SERVING, True, 4, Layout.TP)
    assert after.message == ""
    status = after.transition
    assert status is not None
    assert (status.result, status.reason, status.retryable) == ("RolledBack", "DrainTimeout", True)
    assert status.message == "router r owes 3"


def test_the_first_cause_stays_the_reason_of_a_rollback(make_record: MakeRecord, make_order: MakeOrder) -> None:
    verifying = run(make_record(), Event.ORDERED, Event.DRAINED, Event.SWITCHED, order=make_order())
    failed, _ = advance(
        verifying, Event.VERIFY_FAILED, 50.0, Detail(reasons.VERIFICATION_FAILED, "layout is TP, not DP")
    )
    after = run(failed, Event.RESTORED)
    assert after.transition is not None
    assert (after.transition.result, after.transition.reason) == ("RolledBack", "VerificationFailed")
    assert (after.epoch, after.layout, after.admitting) == (4, Layout.TP, True)


def test_a_failed_rollback_closes_the_pod_and_says_both_causes(make_record: MakeRecord, make_order: MakeOrder) -> None:
    record = run(make_record(), Event.ORDERED, Event.DRAINED, order=make_order())
    record, _ = advance(record, Event.SWITCH_FAILED, 50.0, Detail(reasons.SWITCH_FAILED, "engine: 500"))
    detail = Detail(reasons.ROLLBACK_FAILED, "engine: hangs", retryable=False)
    record, _ = advance(record, Event.RESTORE_FAILED, 51.0, detail)
    assert (record.phase, record.admitting, record.message) == (PodPhase.FAILED, False, "engine: hangs")
    assert record.transition is not None
    assert (record.transition.result, record.transition.reason) == ("Failed", "RollbackFailed")
    assert record.transition.message == "engine: 500; engine: hangs"
    assert record.transition.retryable is False


def test_an_engine_lost_after_the_proof_leaves_the_transition_committed(
    make_record: MakeRecord, make_order: MakeOrder
) -> None:
    publishing = run(make_record(), *HAPPY[:-1], order=make_order())
    after, _ = advance(publishing, Event.ENGINE_LOST, 60.0, Detail(reasons.ENGINE_LOST, "exited with -9"))
    assert (after.phase, after.admitting, after.epoch, after.layout) == (PodPhase.STARTING, False, 5, Layout.DP)
    assert after.transition is not None
    assert after.transition.result is TransitionResult.COMMITTED


@pytest.mark.parametrize("proof", [None, "stale"])
def test_no_commit_without_the_proof_of_this_epoch(
    make_record: MakeRecord, make_order: MakeOrder, proof: str | None
) -> None:
    record = run(make_record(), Event.ORDERED, Event.DRAINED, Event.SWITCHED, order=make_order())
    given_proof = None if proof is None else proof_for(record).model_copy(update={"epoch_after": record.epoch})
    with pytest.raises(UnprovenCommitError, match="epoch 4"):
        advance(record, Event.VERIFIED, 60.0, Detail(proof=given_proof))


def test_only_the_latest_transitions_are_remembered(make_record: MakeRecord, make_order: MakeOrder) -> None:
    record = make_record()
    for number in range(HISTORY_LENGTH + 3):
        to = "DP" if number % 2 == 0 else "TP"
        record = run(record, *HAPPY, order=make_order(id=f"t{number}", to=to))
    assert len(record.transitions) == HISTORY_LENGTH
    assert record.find("t0") is None
    assert record.find(f"t{HISTORY_LENGTH + 2}") is not None


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_restart_before_the_proof_keeps_the_order_in_flight(
    make_record: MakeRecord, make_order: MakeOrder, count: int
) -> None:
    record = run(make_record(), *HAPPY[:count], order=make_order())
    again = restore(record, 500.0)
    assert (again.phase, again.admitting, again.epoch) == (PodPhase.STARTING, False, 4)
    assert again.order is not None
    assert target_of(again) == (Layout.DP, Role.UNIFIED)
    assert again.sequence > record.sequence


def test_a_restart_after_the_proof_is_committed(make_record: MakeRecord, make_order: MakeOrder) -> None:
    again = restore(run(make_record(), *HAPPY[:4], order=make_order()), 500.0)
    assert (again.phase, again.epoch, again.layout, again.order) == (PodPhase.STARTING, 5, Layout.DP, None)
    assert again.transition is not None
    assert again.transition.result is TransitionResult.COMMITTED


def test_a_restart_does_not_open_a_closed_pod(make_record: MakeRecord) -> None:
    closed = make_record(phase=PodPhase.FAILED, admitting=False, message="engine: hangs")
    again = restore(closed, 500.0)
    assert (again.phase, again.admitting, again.message) == (PodPhase.FAILED, False, "engine: hangs")


def possible(record: Record) -> list[Event]:
    events = {event for phase, event in TABLE if phase is record.phase}
    unfit = {Event.TARGET_FOUND, Event.ORIGIN_FOUND} if record.order is None else {Event.ENGINE_READY}
    return sorted(events - unfit)


@pytest.mark.parametrize("event", [Event.TARGET_FOUND, Event.ORIGIN_FOUND])
def test_nothing_is_resolved_without_an_order(make_record: MakeRecord, event: Event) -> None:
    with pytest.raises(IllegalEventError):
        advance(make_record(phase=PodPhase.STARTING, admitting=False), event, 20.0, Detail())


def test_a_pod_does_not_serve_before_the_order_in_flight_is_resolved(
    make_record: MakeRecord, make_order: MakeOrder
) -> None:
    starting = restore(run(make_record(), *HAPPY[:2], order=make_order()), 500.0)
    with pytest.raises(IllegalEventError):
        advance(starting, Event.ENGINE_READY, 501.0, Detail())


@given(st.data())
@settings(deadline=None)
def test_walks_keep_the_promises_of_a_pod(data: st.DataObject) -> None:
    record = new_record("u", Role.PREFILL, Layout.TP, 1000.0)
    now = 1000.0
    for number in range(data.draw(st.integers(0, 60))):
        event = data.draw(st.sampled_from(possible(record)))
        order = None
        if event is Event.ORDERED:
            to = "DP" if record.layout is Layout.TP else "TP"
            order = TransitionRequest(
                id=f"t{number}", kind="Layout", to=to, expected_epoch=record.epoch, fencing_token=number
            )
        proof = proof_for(record) if event is Event.VERIFIED else None
        now += data.draw(st.floats(-5.0, 5.0))
        before = record
        record, effects = advance(before, event, now, Detail("R", "m", order=order, proof=proof))
        assert record.admitting == (record.phase is PodPhase.SERVING)
        assert record.epoch - before.epoch == (1 if event is Event.VERIFIED else 0)
        assert record.sequence >= before.sequence
        assert (record.sequence > before.sequence) or (record.phase, record.admitting) == (
            before.phase,
            before.admitting,
        )
        assert (record.order is not None) or record.phase not in IN_FLIGHT
        assert effects or record.phase in STABLE
        committed = [item for item in record.transitions if item.result is TransitionResult.COMMITTED]
        assert all(item.proof is not None for item in committed)
        if record.order is None and record.transition is not None:
            assert record.transition.result is not TransitionResult.RUNNING
            assert record.transition.finished_at is not None
        assert all(seconds >= 0 for item in record.transitions for seconds in item.seconds_by_phase.values())
        if record.phase is not PodPhase.TERMINATING and data.draw(st.booleans()) and number % 7 == 0:
            record = restore(Record.model_validate_json(record.model_dump_json(by_alias=True)), now)


def test_a_threshold_is_committed_with_its_proof_and_kept_by_other_orders(
    make_record: MakeRecord, make_order: MakeOrder
) -> None:
    shifting = make_record(layout=Layout.SHIFT, shift_threshold_tokens=96)
    record, _ = advance(shifting, Event.ORDERED, 11.0, Detail(order=make_order(to="Shift", shift_threshold_tokens=64)))
    assert (record.shift_threshold_tokens, threshold_of(record)) == (96, 64)
    assert record.transition is not None
    assert record.transition.shift_threshold_tokens == 64
    for event, detail in (
        (Event.DRAINED, Detail()),
        (Event.SWITCHED, Detail()),
        (Event.VERIFIED, Detail(proof=proof_for(shifting))),
        (Event.CONFIRMED, Detail(proof=proof_for(shifting))),
    ):
        record, _ = advance(record, event, 12.0, detail)
    assert (record.layout, record.epoch, record.shift_threshold_tokens) == (Layout.SHIFT, 5, 64)
    record, _ = advance(record, Event.ORDERED, 13.0, Detail(order=make_order(id="t2", to="TP", expected_epoch=5)))
    assert threshold_of(record) == 64


def test_a_threshold_that_was_not_proven_is_forgotten(make_record: MakeRecord, make_order: MakeOrder) -> None:
    shifting = make_record(layout=Layout.SHIFT, shift_threshold_tokens=96)
    record, _ = advance(shifting, Event.ORDERED, 11.0, Detail(order=make_order(to="Shift", shift_threshold_tokens=64)))
    for event in (Event.DRAINED, Event.SWITCH_FAILED, Event.RESTORED):
        record, _ = advance(record, event, 12.0, Detail())
    assert (record.epoch, record.shift_threshold_tokens, threshold_of(record)) == (4, 96, 96)
