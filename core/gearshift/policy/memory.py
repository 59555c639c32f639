# SPDX-License-Identifier: Apache-2.0
"""What a decision remembers: folded from snapshots, rebuilt from status after a restart."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gearshift.api.v1alpha1.status import TransitionRecord
from gearshift.api.vocabulary import Role
from gearshift.policy import layout, role, scale
from gearshift.policy.capacity import learn
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Hold, Memory
from gearshift.policy.snapshot import Snapshot


def rebuild(now: float, history: Iterable[TransitionRecord]) -> Memory:
    """Memory of an operator that begins to watch a service at ``now``, from what its status remembers."""
    stamps: dict[str, float] = {}
    for record in history:
        ended = (record.finished_at or record.started_at).timestamp()
        stamps[record.pod] = max(ended, stamps.get(record.pod, ended))
    return Memory(started_at=now, last_transition_at=max(stamps.values(), default=None), transition_at=stamps)


def fold(memory: Memory, snapshot: Snapshot) -> Memory:
    """Memory after a snapshot; folding the same snapshot twice changes nothing.

    | memory | after |
    |---|---|
    | evidence that is wanted now | kept, or begun now |
    | evidence that is not wanted, or can't be judged | dropped |
    | pod in transition | stamped now |
    | serving pod of epoch > 0 | stamped with the time from which it serves |
    | pod that is gone | its stamp is dropped; the service's last one stays |
    """
    fleet = Fleet.of(snapshot)
    stamps = _stamps(memory, snapshot, fleet)
    learnt = Memory(
        started_at=memory.started_at,
        last_transition_at=_latest(memory.last_transition_at, stamps),
        transition_at=stamps,
        capacity=learn(snapshot, memory, fleet),
    )
    since = {key: memory.evidence_since.get(key, snapshot.at) for key in _wanted(snapshot, learnt, fleet)}
    return Memory(
        started_at=learnt.started_at,
        last_transition_at=learnt.last_transition_at,
        transition_at=stamps,
        evidence_since=since,
        capacity=learnt.capacity,
        scale=scale.remember(snapshot, replace(learnt, scale=memory.scale), fleet),
    )


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
    wanted = layout.want(snapshot, memory, fleet)
    if not isinstance(wanted, Hold) and wanted.target is not None:
        keys.append(layout.evidence_key(wanted.target))
    if snapshot.spec.role(Role.PREFILL) is not None:
        flip = role.want(snapshot, memory, fleet)
        if flip.receiver is not None:
            keys.append(role.evidence_key(flip.receiver))
    return keys
