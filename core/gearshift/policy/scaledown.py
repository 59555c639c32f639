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
    counts = dict(fleet.roles)
    chosen: list[PodView] = []
    candidates = [pod for pod in fleet.live if pod.name not in fleet.moving]
    while len(chosen) < excess and candidates:
        pod = _choose(candidates, targets, counts)
        if pod.ready and chosen:
            break
        chosen.append(pod)
        candidates.remove(pod)
        counts[pod.role] -= 1
        if pod.ready:
            break
    return tuple(DeletePod(pod.name, pod.uid, reasons.SCALE_DOWN) for pod in chosen)


def _choose(candidates: list[PodView], targets: dict[Role, int], counts: dict[Role, int]) -> PodView:
    return min(
        candidates,
        key=lambda pod: (
            targets.get(pod.role, 0) - counts[pod.role], pod.ready, pod.running + pod.waiting, -pod.ordinal,
        ),
    )  # fmt: skip
