# SPDX-License-Identifier: Apache-2.0
"""The budget of accelerators: of the service by its spec, of its namespace by the operator's settings.

A budget keeps pods from being added. It never takes a pod that runs: whoever lowers it below what is there decides what
goes.
"""

from dataclasses import dataclass

from gearshift.api import reasons
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Action, CreatePod, Hold
from gearshift.policy.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Room:
    """Pods that may be added, and the words for what bounds them."""

    pods: int
    why: str


def room(snapshot: Snapshot, fleet: Fleet) -> Room | None:
    """Room for more pods, or None without a budget. A pod holds its accelerators until it is gone.

    | policy.maxAccelerators | of the namespace | room, for pods of 8 accelerators, 2 of which exist |
    |---|---|---|
    | left out | none | None |
    | 24 | none | 1 |
    | left out | 64, others hold 40 | 1 |
    | 24 | 64, others hold 48 | 0 |
    | 8 | none | 0 |
    """
    each, held = snapshot.spec.pod.accelerators, len(fleet.pods)
    found = []
    limit = snapshot.spec.policy.max_accelerators
    if limit is not None:
        found.append(Room(max(0, limit // each - held), f"policy.maxAccelerators is {limit}"))
    of_all = snapshot.namespace_budget
    if of_all is not None:
        free = of_all.limit - of_all.others - held * each
        words = f"namespace {snapshot.namespace} may hold {of_all.limit} accelerators, other services hold"
        found.append(Room(max(0, free // each), f"{words} {of_all.others}"))
    return min(found, key=lambda one: one.pods, default=None)


def within(snapshot: Snapshot, fleet: Fleet, actions: tuple[Action, ...]) -> tuple[tuple[Action, ...], Hold | None]:
    """The actions that the budget lets through, and why not all of them."""
    bounded = room(snapshot, fleet)
    creations = [action for action in actions if isinstance(action, CreatePod)]
    if bounded is None or len(creations) <= bounded.pods:
        return actions, None
    allowed = creations[: bounded.pods]
    kept = tuple(action for action in actions if not isinstance(action, CreatePod) or action in allowed)
    each, held = snapshot.spec.pod.accelerators, len(fleet.pods)
    words = f"{len(creations)} more pods of {each} accelerators are wanted, {held} exist, {bounded.pods} may be added"
    return kept, Hold(reasons.BUDGET_EXHAUSTED, f"{words}: {bounded.why}")
