# SPDX-License-Identifier: Apache-2.0
"""Repair and growth: pods that ended are removed, pods that lack are made. Needs no metrics and no one's approval."""

from gearshift.api import reasons
from gearshift.api.vocabulary import Role
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Action, CreatePod, DeletePod
from gearshift.policy.rolelayout import pinned
from gearshift.policy.snapshot import PodView, Snapshot
from gearshift.policy.targets import role_targets
from gearshift.policy.tuning import REPLACE_AFTER_SECONDS


def repair(snapshot: Snapshot, fleet: Fleet) -> tuple[Action, ...]:
    """Actions that bring the number of live pods up to the spec's.

    | pod | action |
    |---|---|
    | node lost (deleting or not) | delete by force |
    | failed, younger than `REPLACE_AFTER_SECONDS` | none yet; it still counts, so it is not replaced either |
    | failed | delete |
    | live and young failed pods below the target | create at the lowest free ordinal, in the role that lacks most |
    """
    young = {pod.name for pod in fleet.broken if _young(pod, snapshot.at)}
    deletes = [_removal(pod) for pod in fleet.pods if _ended(pod) and pod.name not in young]
    return (*deletes, *_creations(snapshot, fleet, len(young)))


def _ended(pod: PodView) -> bool:
    return pod.node_lost or (pod.failed and not pod.deleting)


def _young(pod: PodView, at: float) -> bool:
    return not pod.node_lost and at - pod.created_at < REPLACE_AFTER_SECONDS


def _removal(pod: PodView) -> DeletePod:
    reason = reasons.NODE_LOST if pod.node_lost else reasons.POD_FAILED
    return DeletePod(pod.name, pod.uid, reason, force=pod.node_lost)


def _creations(snapshot: Snapshot, fleet: Fleet, counted: int) -> list[CreatePod]:
    parallelism = snapshot.spec.parallelism
    targets = role_targets(snapshot.spec)
    layout = fleet.layout(parallelism.layouts, parallelism.start)
    counts = {role: fleet.roles.get(role, 0) for role in targets}
    missing = max(0, sum(targets.values()) - len(fleet.live) - counted)
    created = []
    for ordinal in fleet.free_ordinals(missing):
        role = lacking(targets, counts)
        counts[role] += 1
        own = pinned(snapshot.spec, role)
        created.append(CreatePod(ordinal, role, own or layout, reasons.POD_MISSING))
    return created


def lacking(targets: dict[Role, int], counts: dict[Role, int]) -> Role:
    """Role that is furthest below its target; the first of the spec on ties."""
    return max(targets, key=lambda role: targets[role] - counts[role])
