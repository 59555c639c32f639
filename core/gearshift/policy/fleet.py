# SPDX-License-Identifier: Apache-2.0
"""One reading of a snapshot's pods, shared by all decisions so that they mean the same by live, serving and moving."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.policy.snapshot import PodView, Snapshot

MOVING_PHASES = frozenset(
    {PodPhase.DRAINING, PodPhase.SWITCHING, PodPhase.VERIFYING, PodPhase.PUBLISHING, PodPhase.ROLLING_BACK}
)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The pods of a service by what can be done with them, each tuple by ordinal.

    | deleting | failed or node lost | in |
    |---|---|---|
    | yes | any | neither (but its ordinal is taken, and it is forced away when its node is lost) |
    | no | yes | ``broken`` |
    | no | no | ``live`` |
    """

    pods: tuple[PodView, ...]
    live: tuple[PodView, ...]
    broken: tuple[PodView, ...]
    serving: tuple[PodView, ...]
    outdated: tuple[PodView, ...]  # live, made from another spec
    moving: frozenset[str]  # names of pods in a transition
    roles: Mapping[Role, int]  # live pods by role
    serving_roles: Mapping[Role, int]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Fleet":
        """Sort the pods of a snapshot."""
        pods = tuple(sorted(snapshot.pods, key=lambda pod: (pod.ordinal, pod.uid)))
        live = tuple(pod for pod in pods if not (pod.deleting or pod.failed or pod.node_lost))
        serving = tuple(pod for pod in live if pod.serving)
        return cls(
            pods=pods,
            live=live,
            broken=tuple(pod for pod in pods if not pod.deleting and (pod.failed or pod.node_lost)),
            serving=serving,
            outdated=tuple(pod for pod in live if pod.revision != snapshot.revision),
            moving=_moving(snapshot, live),
            roles=Counter(pod.role for pod in live),
            serving_roles=Counter(pod.role for pod in serving),
        )

    def free_ordinals(self, count: int) -> list[int]:
        """The lowest ``count`` ordinals that no pod holds, not even one that is being deleted."""
        taken = {pod.ordinal for pod in self.pods}
        free: list[int] = []
        ordinal = 0
        while len(free) < count:
            if ordinal not in taken:
                free.append(ordinal)
            ordinal += 1
        return free

    def layout(self, allowed: list[Layout], start: Layout) -> Layout:
        """Layout that most live pods have, among the allowed ones; ``start`` on ties and without pods."""
        counts = Counter(pod.layout for pod in self.live if pod.layout in allowed)
        return max(allowed, key=lambda layout: (counts[layout], layout is start))


def _moving(snapshot: Snapshot, live: Iterable[PodView]) -> frozenset[str]:
    ordered = {flight.pod for flight in snapshot.in_flight}
    return frozenset(ordered | {pod.name for pod in live if pod.phase in MOVING_PHASES})


def covers(roles: Iterable[Role]) -> bool:
    """Whether pods of these roles can serve a whole request: any can, a missing role costs speed, never the request."""
    return any(True for _ in roles)
