# SPDX-License-Identifier: Apache-2.0
"""Scale-down: names the pod that goes."""

from gearshift.api import reasons
from gearshift.api.vocabulary import Role
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import DeletePod
from gearshift.policy.snapshot import PodView, Snapshot
from gearshift.policy.targets import role_targets


def scale_down(snapshot: Snapshot, fleet: Fleet) -> tuple[DeletePod, ...]:
    """Deletions of this tick that bring the live pods down to the spec's number.

    | live pods over target | pods | deleted |
    |---|---|---|
    | no | any | none |
    | yes | some not ready and not in transition | as many of them as are over, of the role most above its target |
    | yes | all ready | one: of that role, not in transition, least loaded; the highest ordinal on ties |
    """
    targets = role_targets(snapshot.spec)
    excess = len(fleet.live) - sum(targets.values())
    queues = _queues(fleet) if excess > 0 else {}
    above = {role: fleet.roles[role] - targets.get(role, 0) for role in queues}
    chosen: list[PodView] = []
    while len(chosen) < excess and any(queues.values()):
        role = min((role for role in queues if queues[role]), key=lambda role: (-above[role], _rank(queues[role][-1])))
        if queues[role][-1].ready and chosen:
            break
        chosen.append(queues[role].pop())
        above[role] -= 1
        if chosen[-1].ready:
            break
    return tuple(DeletePod(pod.name, pod.uid, reasons.SCALE_DOWN) for pod in chosen)


def _queues(fleet: Fleet) -> dict[Role, list[PodView]]:
    """Pods of each role that may go, the next one last."""
    queues: dict[Role, list[PodView]] = {}
    for pod in sorted(fleet.live, key=_rank, reverse=True):
        if pod.name not in fleet.moving:
            queues.setdefault(pod.role, []).append(pod)
    return queues


def _rank(pod: PodView) -> tuple[bool, int, int]:
    return (pod.ready, pod.running + pod.waiting, -pod.ordinal)
