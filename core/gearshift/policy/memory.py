# SPDX-License-Identifier: Apache-2.0
"""What a decision remembers: folded from snapshots, rebuilt from status after a restart."""

from collections.abc import Mapping
from dataclasses import replace

from gearshift.api.v1alpha1.status import InferenceServiceStatus, TransitionRecord
from gearshift.api.vocabulary import TransitionResult
from gearshift.policy import layout, roles, scale
from gearshift.policy.approval import in_force, remember_approval
from gearshift.policy.bridge import bridges, remembered_bridges, remembered_wish
from gearshift.policy.capacity import learn
from gearshift.policy.fleet import Fleet
from gearshift.policy.moves import moves, seen
from gearshift.policy.override import active_override
from gearshift.policy.plan import Approved, Hold, Memory, Move
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.startup import remembered_startups, startups
from gearshift.policy.unified import slow_transfers_at


def rebuild(now: float, status: InferenceServiceStatus) -> Memory:
    """Memory of an operator that begins to watch a service at ``now``, from what its status remembers."""
    records, approval = sorted(status.transition_history, key=ended_at), status.approval
    stamps = {record.pod: ended_at(record) for record in records}
    return Memory(
        started_at=now,
        last_transition_at=max(stamps.values(), default=None),
        transition_at=stamps,
        moves=tuple(
            Move(ended_at(record), record.pod, record.kind, record.from_, record.to)
            for record in records
            if record.result is TransitionResult.COMMITTED and record.from_ != record.to
        ),
        startups=remembered_startups(status.startup),
        approved=None if approval is None else Approved(approval.plan, now, approval.until.timestamp()),
        bridges=remembered_bridges(status),
    )


def ended_at(record: TransitionRecord) -> float:
    """When a transition ended, in seconds since the epoch; when it began, as long as it runs."""
    return (record.finished_at or record.started_at).timestamp()


def fold(memory: Memory, snapshot: Snapshot) -> Memory:
    """Memory after a snapshot; folding the same snapshot twice changes nothing.

    | memory | after |
    |---|---|
    | evidence that is wanted now | kept, or begun now |
    | evidence that is not wanted, or can't be judged | dropped |
    | evidence on what an override orders, while it lasts | dropped: it is undone on evidence from after it |
    | pod in transition | stamped now |
    | serving pod of epoch > 0 | stamped with the time from which it serves |
    | pod that is gone | its stamp is dropped; the service's last one stays |
    | serving pod with another layout or role than when it last served | a move, kept for an hour |
    | pod that serves for the first time | its start-up time |
    | approval that is there | kept from when it was first seen, until it is taken away |
    | KV caches take too long to arrive | when they last did |
    | bridge | see `gearshift.policy.bridge.bridges` |
    """
    approved = remember_approval(snapshot, memory)
    snapshot = in_force(snapshot, memory)
    fleet = Fleet.of(snapshot)
    stamps = _stamps(memory, snapshot, fleet)
    learnt = Memory(
        started_at=memory.started_at,
        last_transition_at=_latest(memory.last_transition_at, stamps),
        transition_at=stamps,
        capacity=learn(snapshot, memory, fleet),
        seen=seen(memory, fleet),
        moves=moves(snapshot, memory, fleet),
        approved=approved,
        startups=startups(memory, fleet),
        slow_transfers_at=slow_transfers_at(snapshot, memory),
        bridges=bridges(snapshot, memory, fleet),
        bridge_wish=memory.bridge_wish,
    )
    learnt = replace(learnt, bridge_wish=remembered_wish(snapshot, learnt, fleet))
    since = {key: memory.evidence_since.get(key, snapshot.at) for key in _wanted(snapshot, learnt, fleet)}
    kept = scale.remember(snapshot, replace(learnt, scale=memory.scale), fleet)
    return replace(learnt, evidence_since=since, scale=kept)


def _stamps(memory: Memory, snapshot: Snapshot, fleet: Fleet) -> dict[str, float]:
    stamps: dict[str, float] = {}
    for pod in fleet.live:
        known = memory.transition_at.get(pod.name)
        if pod.name in fleet.moving:
            stamps[pod.name] = max(snapshot.at, known or 0.0)
        elif pod.epoch > 0 and pod.serving:
            stamps[pod.name] = max(pod.since, known or 0.0)
        elif known is not None:
            stamps[pod.name] = known
    return stamps


def _latest(last: float | None, stamps: Mapping[str, float]) -> float | None:
    return max((stamp for stamp in (last, *stamps.values()) if stamp is not None), default=None)


def _wanted(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> list[str]:
    keys = []
    order = active_override(snapshot)
    wanted = layout.want(snapshot, memory, fleet)
    if not isinstance(wanted, Hold) and wanted.target is not None and (order is None or order.layout is None):
        keys.append(layout.evidence_key(wanted.target))
    if snapshot.spec.disaggregated and (order is None or order.role is None):
        keys.extend(roles.evidence(snapshot, memory, fleet))
    return keys
