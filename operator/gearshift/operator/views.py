# SPDX-License-Identifier: Apache-2.0
"""Pure translation of what was gathered into the snapshot's terms."""

from collections.abc import Mapping

from gearshift.api.v1alpha1.status import PodStatus
from gearshift.api.vocabulary import PodPhase, TransitionResult
from gearshift.api.wire import PodState
from gearshift.operator.records import NodeRecord, PodRecord
from gearshift.policy.snapshot import InFlight, PodView


def pod_view(record: PodRecord, answer: PodState | None, known: PodState | PodStatus | None, *, lost: bool) -> PodView:
    """One pod as decisions see it.

    ``answer`` is what its sidecar says now, ``known`` the last that was heard of it. Without either, role and layout
    are those that the pod was started with.
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
        failed=record.ended or lost,
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


def node_lost(record: PodRecord, nodes: Mapping[str, NodeRecord], at: float, grace_seconds: float) -> bool:
    """The pod's node is gone, was declared out of service, or has not been ready for longer than the grace."""
    if not record.node:
        return False
    node = nodes.get(record.node)
    if node is None or node.out_of_service:
        return True
    return not node.ready and at - node.since > grace_seconds


def in_flight(answers: Mapping[str, PodState]) -> tuple[InFlight, ...]:
    """Transitions that run by the word of their sidecars."""
    return tuple(
        InFlight(t.id, state.pod, t.kind, t.to, t.started_at)
        for state in answers.values()
        if (t := state.transition) is not None and t.result is TransitionResult.RUNNING
    )
