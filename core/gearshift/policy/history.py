# SPDX-License-Identifier: Apache-2.0
"""Transition records of a service, from what its sidecars say and what its status already tells.

Both are read anew each time and merged by id, so that an operator that dies in the middle of a transition loses
nothing: the sidecar goes on by itself, and the next leader finds its outcome there.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from gearshift.api import reasons
from gearshift.api.v1alpha1.status import MAX_HISTORY, InferenceServiceStatus, ProofStatus, TransitionRecord
from gearshift.api.vocabulary import PodPhase, TransitionResult
from gearshift.api.wire import PodState, TransitionStatus
from gearshift.policy.snapshot import Ended

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
    previous: InferenceServiceStatus, states: Iterable[PodState], pods: Mapping[str, bool], at: float
) -> tuple[TransitionRecord | None, list[TransitionRecord]]:
    """The running transition, and the ended ones, newest first.

    ``states`` are those of the pods that answered; ``pods`` maps the name of every pod that exists to whether it could
    still bring a transition to its end.

    | known from status as running | the sidecar says | result |
    |---|---|---|
    | no | running | it is the running one |
    | any | ended | goes to the history |
    | yes | another one, or none, or no answer, pod could go on | stays as it is known |
    | yes | pod is gone or ended | goes to the history as Failed, PodLost |
    """
    told = {item.id: item for item in (_of(state) for state in states) if item is not None}
    known = {item.id: item for item in previous.transition_history}
    running = [item for item in told.values() if item.finished_at is None]
    if previous.transition is not None and previous.transition.id not in told:
        before = previous.transition
        if pods.get(before.pod, False):
            running.append(before)
        else:
            known.setdefault(before.id, _lost(before, at))
    ended = known | {item.id: item for item in told.values() if item.finished_at is not None}
    newest = sorted(ended.values(), key=lambda item: (item.finished_at or item.started_at, item.id), reverse=True)
    current = max(running, key=lambda item: (item.started_at, item.id), default=None)
    return current, newest[:MAX_HISTORY]


def _of(state: PodState) -> TransitionRecord | None:
    return None if state.transition is None else record(state.pod, state.transition)


def _lost(before: TransitionRecord, at: float) -> TransitionRecord:
    return before.model_copy(
        update={
            "phase": PodPhase.FAILED,
            "result": TransitionResult.FAILED,
            "reason": reasons.POD_LOST,
            "message": f"pod {before.pod} went away during the transition",
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
        )
        for item in history
    )
