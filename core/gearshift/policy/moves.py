# SPDX-License-Identifier: Apache-2.0
"""What pods have become lately: seen on the pods themselves, so that it does not matter who ordered it."""

from collections.abc import Iterator, Mapping
from statistics import median

from gearshift.api.vocabulary import TransitionKind
from gearshift.policy import tuning
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Memory, Move, Seen
from gearshift.policy.snapshot import PodView, Snapshot

Change = tuple[TransitionKind, str, str]  # kind, from, to


def seen(memory: Memory, fleet: Fleet) -> Mapping[str, Seen]:
    """By uid, what each pod is, or was when it last served; pods that are gone are forgotten."""
    serving = {pod.uid: Seen(pod.role, pod.layout) for pod in fleet.serving}
    kept = {pod.uid: memory.seen[pod.uid] for pod in fleet.pods if pod.uid in memory.seen}
    return kept | serving


def moves(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> tuple[Move, ...]:
    """Moves of the last hour, oldest first.

    | pod | result |
    |---|---|
    | never seen serving | none: it was started so |
    | serves with another layout, or another role, than when it last served | a move, when it began to serve |
    """
    since = snapshot.at - tuning.HOUR_SECONDS
    known = [move for move in memory.moves if move.at > since]
    found = [move for pod in fleet.serving if pod.uid in memory.seen for move in _moved(pod, memory.seen[pod.uid])]
    return tuple(sorted({*known, *found}, key=lambda move: (move.at, move.pod, move.kind)))


def _moved(pod: PodView, before: Seen) -> Iterator[Move]:
    if pod.layout is not before.layout:
        yield Move(pod.since, pod.name, TransitionKind.LAYOUT, before.layout.value, pod.layout.value)
    if pod.role is not before.role:
        yield Move(pod.since, pod.name, TransitionKind.ROLE, before.role.value, pod.role.value)


def latest_moves(snapshot: Snapshot, memory: Memory) -> Mapping[Change, Move]:
    """The latest move of each kind, from and to, of those of the last `tuning.REVERSAL_SECONDS`."""
    since = snapshot.at - tuning.REVERSAL_SECONDS
    return {(move.kind, move.from_, move.to): move for move in memory.moves if move.at > since}


def usual_seconds(snapshot: Snapshot, kind: TransitionKind) -> float | None:
    """Seconds that a change of this kind takes, draining included: the median of those that status tells, or None."""
    took = [each.seconds for each in snapshot.ended if each.kind is kind and not each.failed]
    return median(took) if took else None
