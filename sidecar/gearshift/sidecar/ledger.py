# SPDX-License-Identifier: Apache-2.0
"""What a pod knows of itself, and how each event changes it: the bookkeeping half of the transition machine, pure.

A `Record` is also what is written to the state file, so a restarted sidecar goes on from the last step.
"""

from dataclasses import dataclass
from typing import Final

from gearshift.api import reasons
from gearshift.api.base import FrozenModel
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind, TransitionResult
from gearshift.api.wire import Proof, TransitionRequest, TransitionStatus
from gearshift.sidecar.machine import BOOKKEEPING, Effect, Event, IllegalEventError, step

HISTORY_LENGTH: Final = 16
_RESOLUTIONS: Final = frozenset({Event.TARGET_FOUND, Event.ORIGIN_FOUND})
_RESULTS: Final = {
    Effect.FINISH_COMMITTED: TransitionResult.COMMITTED,
    Effect.FINISH_ROLLED_BACK: TransitionResult.ROLLED_BACK,
    Effect.FINISH_FAILED: TransitionResult.FAILED,
}


class UnprovenCommitError(RuntimeError):
    """A commit without proof, or with the proof of another epoch: a defect of the agent, never of the input."""


class Record(FrozenModel):
    """State of one pod."""

    uid: str
    phase: PodPhase
    epoch: int
    sequence: int
    admitting: bool
    role: Role
    layout: Layout
    since: float
    fencing_token: int = 0
    message: str = ""
    shift_threshold_tokens: int | None = None  # of layout Shift, as last ordered; None: as the engine starts
    order: TransitionRequest | None = None  # in flight
    transitions: tuple[TransitionStatus, ...] = ()  # newest last

    @property
    def transition(self) -> TransitionStatus | None:
        """The running transition, or the last one."""
        return self.transitions[-1] if self.transitions else None

    def find(self, transition_id: str) -> TransitionStatus | None:
        """The remembered transition of this id."""
        return next((item for item in self.transitions if item.id == transition_id), None)


@dataclass(frozen=True, slots=True)
class Detail:
    """What an event brings along."""

    reason: str = ""
    message: str = ""
    retryable: bool = True
    order: TransitionRequest | None = None
    proof: Proof | None = None


def new_record(uid: str, role: Role, layout: Layout, now: float, threshold: int | None = None) -> Record:
    """Record of a pod that starts for the first time.

    The sequence begins at the wall clock in milliseconds, so it also grows from one pod of a name to the next.
    """
    return Record(
        uid=uid,
        phase=PodPhase.STARTING,
        epoch=0,
        sequence=int(now * 1000),
        admitting=False,
        role=role,
        layout=layout,
        since=now,
        shift_threshold_tokens=threshold,
    )


def target_of(record: Record) -> tuple[Layout, Role]:
    """Layout and role that the order in flight leads to; the present ones without an order."""
    if record.order is None:
        return record.layout, record.role
    if record.order.kind is TransitionKind.LAYOUT:
        return Layout(record.order.to), record.role
    return record.layout, Role(record.order.to)


def threshold_of(record: Record) -> int | None:
    """Threshold of layout Shift that the order in flight leads to; the present one without a word about it."""
    ordered = record.order.shift_threshold_tokens if record.order is not None else None
    return record.shift_threshold_tokens if ordered is None else ordered


def fence(record: Record, token: int) -> Record:
    """Remember the highest fencing token seen."""
    return record.model_copy(update={"fencing_token": max(record.fencing_token, token)})


def advance(record: Record, event: Event, now: float, detail: Detail) -> tuple[Record, tuple[Effect, ...]]:
    """Record after an event, and the effects that the agent must carry out.

    Raises:
        IllegalEventError: the event cannot happen in this phase, or not with (or without) an order in flight.
        UnprovenCommitError: a commit without its proof.
    """
    if (record.order is not None and event is Event.ENGINE_READY) or (record.order is None and event in _RESOLUTIONS):
        raise IllegalEventError(record.phase, event)
    outcome = step(record.phase, event)
    changed = _note(_time_phase(record, now), detail)
    if event is Event.ORDERED:
        changed = _open(changed, detail, now)
    if changed.order is not None:
        changed = _with_transition(changed, phase=outcome.phase)
    for effect in outcome.effects:
        changed = _keep_books(changed, effect, now, detail)
    moved = outcome.phase is not record.phase
    changed = changed.model_copy(
        update={
            "phase": outcome.phase,
            "since": now if moved else record.since,
            "message": "" if outcome.phase is PodPhase.SERVING else (detail.message or changed.message),
        }
    )
    if _visible(changed) != _visible(record):
        changed = changed.model_copy(update={"sequence": record.sequence + 1})
    return changed, tuple(effect for effect in outcome.effects if effect not in BOOKKEEPING)


def restore(record: Record, now: float) -> Record:
    """Record with which a restarted sidecar begins: nothing admitted until the engine has been asked.

    A transition that had its proof is committed; one that had not stays in flight, to be resolved by the engine's word.
    """
    if record.order is not None and record.transition is not None and record.transition.proof is not None:
        record = _finish(record, TransitionResult.COMMITTED, now)
    if record.order is not None:
        record = _with_transition(record, phase=PodPhase.STARTING)
    phase = PodPhase.FAILED if record.phase is PodPhase.FAILED else PodPhase.STARTING
    return record.model_copy(update={"phase": phase, "since": now, "admitting": False, "sequence": record.sequence + 1})


def _visible(record: Record) -> tuple[object, ...]:
    return (record.phase, record.admitting, record.epoch, record.role, record.layout, record.message)


def _keep_books(record: Record, effect: Effect, now: float, detail: Detail) -> Record:
    if effect is Effect.UNPUBLISH:
        return record.model_copy(update={"admitting": False})
    if effect is Effect.ADMIT:
        return record.model_copy(update={"admitting": True})
    if effect is Effect.COMMIT:
        return _commit(record, detail.proof)
    if effect in _RESULTS:
        return _finish(record, _RESULTS[effect], now)
    return record


def _open(record: Record, detail: Detail, now: float) -> Record:
    order = detail.order
    if order is None:
        raise ValueError("an order event without its order")
    before = record.layout if order.kind is TransitionKind.LAYOUT else record.role
    status = TransitionStatus(
        id=order.id,
        kind=order.kind,
        from_=before.value,
        to=order.to,
        phase=record.phase,
        started_at=now,
        shift_threshold_tokens=order.shift_threshold_tokens,
    )
    kept = (*record.transitions, status)[-HISTORY_LENGTH:]
    return fence(record.model_copy(update={"order": order, "transitions": kept}), order.fencing_token)


def _commit(record: Record, proof: Proof | None) -> Record:
    if proof is None or (proof.epoch_before, proof.epoch_after) != (record.epoch, record.epoch + 1):
        raise UnprovenCommitError(f"epoch {record.epoch} cannot be left with the proof {proof!r}")
    layout, role = target_of(record)
    update = {"layout": layout, "role": role, "shift_threshold_tokens": threshold_of(record)}
    changed = record.model_copy(update={"epoch": record.epoch + 1, **update})
    return _with_transition(changed, proof=proof)


def _finish(record: Record, result: TransitionResult, now: float) -> Record:
    """Close the running transition; without one there is nothing to close."""
    if record.order is None or record.transition is None:
        return record
    changes: dict[str, object] = {"result": result, "finished_at": now}
    if result is TransitionResult.COMMITTED:
        changes["reason"] = reasons.VERIFIED
    return _with_transition(record, **changes).model_copy(update={"order": None})


def _time_phase(record: Record, now: float) -> Record:
    """Add the time since the last step to the running transition's account of this phase."""
    if record.order is None or record.transition is None:
        return record
    spent = dict(record.transition.seconds_by_phase)
    entered = max(record.since, record.transition.started_at)
    spent[record.phase.value] = round(spent.get(record.phase.value, 0.0) + max(0.0, now - entered), 6)
    return _with_transition(record, seconds_by_phase=spent)


def _note(record: Record, detail: Detail) -> Record:
    """Keep the first cause of trouble as the transition's reason; later ones add to the message."""
    status = record.transition
    if record.order is None or status is None:
        return record
    changes: dict[str, object] = {}
    if detail.proof is not None and status.proof is not None:
        changes["proof"] = detail.proof
    if detail.reason and (not status.reason or detail.reason == reasons.ROLLBACK_FAILED):
        changes |= {"reason": detail.reason, "retryable": detail.retryable}
    if detail.message:
        changes["message"] = f"{status.message}; {detail.message}" if status.message else detail.message
    return _with_transition(record, **changes)


def _with_transition(record: Record, **changes: object) -> Record:
    if record.transition is None:
        return record
    last = record.transition.model_copy(update=changes)
    return record.model_copy(update={"transitions": (*record.transitions[:-1], last)})
