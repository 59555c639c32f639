# SPDX-License-Identifier: Apache-2.0
"""Pure translation of what was gathered into the snapshot's terms."""

from collections.abc import Mapping

from gearshift.api.v1alpha1.status import PodStatus
from gearshift.api.vocabulary import PodPhase, TransitionResult
from gearshift.api.wire import PodState
from gearshift.operator.records import NodeRecord, PodRecord
from gearshift.policy.snapshot import InFlight, PodView


def pod_view(
    record: PodRecord,
    answer: PodState | None,
    known: PodState | PodStatus | None,
    *,
    lost: bool,
    stuck: bool = False,
) -> PodView:
    """One pod as decisions see it.

    ``answer`` is what its sidecar says now, ``known`` the last that was heard of it. Without either, role and layout
    are those that the pod was started with. ``stuck``: it has been in a transition for longer than any may take, so
    that only another pod helps.
    """
    last = answer or known
    return PodView(
        name=record.name,
        uid=record.uid,
        ordinal=record.ordinal,
        revision=record.revision,
        role=last.role if last is not None else record.role,
        layout=last.layout if last is not None else record.layout,
        epoch=last.epoch if last is not None else 0,
        phase=phase_of(record, answer, heard=known is not None),
        ready=record.ready,
        created_at=record.created_at,
        since=answer.since if answer is not None else record.ready_since,
        deleting=record.deleting,
        failed=record.ended or lost or stuck or beyond_repair(answer),
        node_lost=lost,
        layouts=tuple(answer.layouts) if answer is not None else record.layouts,
        running=answer.load.running if answer is not None else 0,
        waiting=answer.load.waiting if answer is not None else 0,
        kv_usage=answer.load.kv_usage if answer is not None else 0.0,
        shift_threshold_tokens=last.shift_threshold_tokens if last is not None else None,
    )


def phase_of(record: PodRecord, answer: PodState | None, *, heard: bool) -> PodPhase:
    """
    | deleting | ended | sidecar answers | ready or heard of before | phase |
    |---|---|---|---|---|
    | yes | | | | Terminating |
    | no | yes | | | Failed |
    | no | no | yes | | what it says |
    | no | no | no | yes | Unknown |
    | no | no | no | no | Starting |
    """
    if record.deleting:
        return PodPhase.TERMINATING
    if record.ended:
        return PodPhase.FAILED
    if answer is not None:
        return answer.phase
    return PodPhase.UNKNOWN if record.ready or heard else PodPhase.STARTING


def beyond_repair(answer: PodState | None) -> bool:
    """A transition left the pod in neither its new nor its old state: only another pod helps.

    A pod whose engine refused to start is not: another would be told the same.
    """
    if answer is None or answer.phase is not PodPhase.FAILED:
        return False
    return answer.transition is not None and answer.transition.result is TransitionResult.FAILED


def start_refused(answer: PodState) -> bool:
    """The pod's engine refused what it was told to run."""
    return answer.phase is PodPhase.FAILED and not beyond_repair(answer)


def node_lost(
    record: PodRecord, nodes: Mapping[str, NodeRecord], absent: Mapping[str, float], at: float, grace_seconds: float
) -> bool:
    """Whether the pod's node is lost. ``absent``: since when nodes that pods are on have not been known.

    | node | some node is ready | lost |
    |---|---|---|
    | none yet | | no |
    | not known for longer than the grace | | yes |
    | not known, for less | | no: the watch of nodes may lag behind that of pods |
    | declared out of service | | yes |
    | not ready for longer than the grace | yes | yes |
    | not ready for longer than the grace | no | no: a new pod could run nowhere, and the view may be what is broken |
    """
    if not record.node:
        return False
    node = nodes.get(record.node)
    if node is None:
        return at - absent.get(record.node, at) > grace_seconds
    if node.out_of_service:
        return True
    return not node.ready and at - node.since > grace_seconds and any(other.ready for other in nodes.values())


def in_flight(answers: Mapping[str, PodState]) -> tuple[InFlight, ...]:
    """Transitions that run by the word of their sidecars."""
    return tuple(
        InFlight(t.id, state.pod, t.kind, t.to, t.started_at)
        for state in answers.values()
        if (t := state.transition) is not None and t.result is TransitionResult.RUNNING
    )
