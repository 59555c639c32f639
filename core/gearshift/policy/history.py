# SPDX-License-Identifier: Apache-2.0
"""Transition records of a service, from what its sidecars say and what its status already tells.

Both are read anew each time and merged by id, so that an operator that dies in the middle of a transition loses
nothing: the sidecar goes on by itself, and the next leader finds its outcome there.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from gearshift.api import reasons
from gearshift.api.v1alpha1.status import MAX_HISTORY, InferenceServiceStatus, ProofStatus, TransitionRecord
from gearshift.api.vocabulary import PodPhase, TransitionResult
from gearshift.api.wire import PodState, TransitionStatus
from gearshift.policy.snapshot import Ended

_LOST: Final = (reasons.POD_LOST, "the pod went away during the transition")
_OVERDUE: Final = (reasons.TRANSITION_OVERDUE, "the pod has not brought the transition to an end in the time for it")
_FORGOTTEN: Final = (reasons.TRANSITION_FORGOTTEN, "the pod took the order and knows nothing of it")
FAILURES = (TransitionResult.ROLLED_BACK, TransitionResult.FAILED)


def record(pod: str, transition: TransitionStatus) -> TransitionRecord:
    """What a sidecar says of a transition, in the form of status."""
    proof = transition.proof
    finished = transition.finished_at
    return TransitionRecord(
        id=transition.id,
        pod=pod,
        kind=transition.kind,
        from_=transition.from_,
        to=transition.to,
        phase=transition.phase,
        result=transition.result,
        reason=transition.reason[:253],
        message=transition.message[:1024],
        started_at=moment(transition.started_at),
        finished_at=None if finished is None else moment(finished),
        duration_milliseconds=None if finished is None else max(0, round(1000 * (finished - transition.started_at))),
        retryable=transition.retryable if transition.result in FAILURES else None,
        proof=None
        if proof is None
        else ProofStatus(
            epoch=proof.epoch_after, ranks=proof.ranks, probe_tokens=proof.probe_tokens, routers=proof.routers
        ),
    )


def moment(seconds: float) -> datetime:
    """Seconds since the epoch as the whole second that Kubernetes keeps."""
    return datetime.fromtimestamp(int(seconds), UTC)


def merged(
    previous: InferenceServiceStatus,
    states: Iterable[PodState],
    pods: Mapping[str, bool],
    at: float,
    limit_seconds: float = math.inf,
) -> tuple[TransitionRecord | None, list[TransitionRecord]]:
    """The running transition, and the ended ones, newest first.

    ``states`` are those of the pods that answered; ``pods`` maps the name of every pod that exists to whether it could
    still bring a transition to its end. A transition may take ``limit_seconds``.

    | known from status as running | the sidecar says | limit passed | result |
    |---|---|---|---|
    | any | running | no | it is the running one |
    | any | running | yes | goes to the history as Failed, TransitionOverdue |
    | any | ended | any | goes to the history |
    | yes | a younger one | any | forgotten: nobody knows how it ended |
    | yes | an older one, or none | any | goes to the history as Failed, TransitionForgotten |
    | yes | no answer, pod could go on | no | stays as it is known |
    | yes | no answer, pod could go on | yes | goes to the history as Failed, TransitionOverdue |
    | yes | pod is gone or ended | any | goes to the history as Failed, PodLost |
    """
    told = {state.pod: _of(state) for state in states}
    known = {item.id: item for item in previous.transition_history}
    running: list[TransitionRecord] = []
    for item in [item for item in told.values() if item is not None]:
        if item.finished_at is not None:
            known[item.id] = item
        elif overdue(item.started_at.timestamp(), at, limit_seconds):
            known.setdefault(item.id, _failed(item, at, *_OVERDUE))
        else:
            known.pop(item.id, None)
            running.append(item)
    before = previous.transition
    if before is not None and before.id not in known and before.id not in {item.id for item in running}:
        why = _fate(before, told, pods, at, limit_seconds)
        if why is None:
            running.append(before)
        elif why:
            known[before.id] = _failed(before, at, *why)
    newest = sorted(known.values(), key=lambda item: (item.finished_at or item.started_at, item.id), reverse=True)
    current = max(running, key=lambda item: (item.started_at, item.id), default=None)
    return current, newest[:MAX_HISTORY]


def _of(state: PodState) -> TransitionRecord | None:
    return None if state.transition is None else record(state.pod, state.transition)


def overdue(started_at: float, at: float, limit_seconds: float) -> bool:
    """A transition has taken longer than any may; all are seconds."""
    return at - started_at > limit_seconds


def _fate(
    before: TransitionRecord, told: Mapping[str, TransitionRecord | None], pods: Mapping[str, bool], at: float,
    limit_seconds: float,
) -> tuple[str, str] | tuple[()] | None:  # fmt: skip
    """Why a transition that its sidecar does not speak of has failed; empty: nobody knows; None: it may still run."""
    if not pods.get(before.pod, False):
        return _LOST
    if before.pod in told:
        other = told[before.pod]
        return _FORGOTTEN if other is None or other.started_at <= before.started_at else ()
    return _OVERDUE if overdue(before.started_at.timestamp(), at, limit_seconds) else None


def _failed(before: TransitionRecord, at: float, reason: str, message: str) -> TransitionRecord:
    return before.model_copy(
        update={
            "phase": PodPhase.FAILED,
            "result": TransitionResult.FAILED,
            "reason": reason,
            "message": message,
            "finished_at": moment(at),
            "retryable": True,
        }
    )


def ended(history: Iterable[TransitionRecord]) -> tuple[Ended, ...]:
    """The ended transitions as decisions see them, newest first. A failure that does not say so may be retried."""
    return tuple(
        Ended(
            item.pod,
            item.kind,
            item.from_,
            item.to,
            item.result,
            (item.finished_at or item.started_at).timestamp(),
            item.retryable is not False,
            (item.duration_milliseconds or 0) / 1000,
        )
        for item in history
    )
