# SPDX-License-Identifier: Apache-2.0
"""Who runs the fleet: Gearshift's own policy, nobody (a static fleet), or an autoscaler of queue length."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from gearshift.api.vocabulary import Layout, Role
from gearshift.policy.decide import decide
from gearshift.policy.memory import fold
from gearshift.policy.plan import Action, CreatePod, DeletePod, Memory, Plan
from gearshift.policy.snapshot import PodView, Snapshot


class PolicyNameError(ValueError):
    """A policy that the simulator does not know. The message lists what it knows."""


class Controller(Protocol):
    """Decides what becomes of the fleet at each tick."""

    name: str

    def initial(self, spec_roles: dict[Role, int]) -> dict[Role, int]:
        """Pods by role that serve when the trace begins."""

    def tick(self, snapshot: Snapshot) -> Plan:
        """What to do now."""


@dataclass
class Ours:
    """The policy of the operator."""

    name: str = "ours"
    memory: Memory = field(default_factory=lambda: Memory(started_at=0.0))
    snapshots: list[tuple[Snapshot, Plan]] = field(default_factory=list)
    recording: bool = False

    def initial(self, spec_roles: dict[Role, int]) -> dict[Role, int]:
        """What the spec asks for."""
        return spec_roles

    def tick(self, snapshot: Snapshot) -> Plan:
        """One tick of the operator."""
        self.memory = fold(self.memory, snapshot)
        plan = decide(snapshot, self.memory)
        if self.recording:
            self.snapshots.append((snapshot, plan))
        return plan


@dataclass
class Static:
    """A fleet that nobody touches."""

    name: str
    pods: dict[Role, int]

    def initial(self, spec_roles: dict[Role, int]) -> dict[Role, int]:  # noqa: ARG002 - its own number counts
        """Its own number."""
        return self.pods

    def tick(self, snapshot: Snapshot) -> Plan:  # noqa: ARG002 - it never acts
        """Nothing."""
        return Plan("static")


TOLERANCE: Final = 0.1
DOWN_SECONDS: Final = 300.0
PERIOD_SECONDS: Final = 15.0


@dataclass
class Reactive:
    """An autoscaler as Kubernetes' HPA on requests in flight per pod: tolerance 10 %, downscale window 5 minutes."""

    target: float
    least: int
    most: int
    name: str = "reactive"
    _wanted: list[tuple[float, int]] = field(default_factory=list)
    _next: float = 0.0

    def initial(self, spec_roles: dict[Role, int]) -> dict[Role, int]:
        """What the spec asks for."""
        return spec_roles

    def tick(self, snapshot: Snapshot) -> Plan:
        """Pods wanted for the requests in flight; the most wanted of the last minutes when that is fewer."""
        pods = [pod for pod in snapshot.pods if not pod.deleting]
        serving = [pod for pod in pods if pod.serving]
        if snapshot.at < self._next or not serving:
            return Plan("reactive")
        self._next = snapshot.at + PERIOD_SECONDS
        ratio = sum(pod.running + pod.waiting for pod in serving) / len(serving) / self.target
        wanted = len(pods) if abs(ratio - 1) <= TOLERANCE else math.ceil(len(serving) * ratio)
        wanted = min(max(wanted, self.least), self.most)
        self._wanted = [each for each in self._wanted if each[0] > snapshot.at - DOWN_SECONDS] + [(snapshot.at, wanted)]
        calm = max(each for _, each in self._wanted)
        return Plan("reactive", tuple(_towards(pods, max(wanted, min(calm, len(pods))), pods[0].layout)))


def _towards(pods: Sequence[PodView], wanted: int, layout: Layout) -> list[Action]:
    views = sorted(pods, key=lambda pod: pod.ordinal)
    taken = {pod.ordinal for pod in views}
    free = (ordinal for ordinal in range(len(views) + wanted) if ordinal not in taken)
    created: list[Action] = [
        CreatePod(next(free), Role.UNIFIED, layout, "Reactive") for _ in range(max(0, wanted - len(views)))
    ]
    doomed = views[wanted:]
    return created + [DeletePod(pod.name, pod.uid, "Reactive") for pod in doomed]


def controller(text: str, least: int, most: int, target: float) -> Controller:
    """``ours``, ``static:N``, ``static:P:D`` or ``reactive``.

    Raises:
        PolicyNameError: it is none of them.
    """
    kind, *numbers = text.split(":")
    if kind == "ours" and not numbers:
        return Ours()
    if kind == "reactive" and not numbers:
        return Reactive(target, least, most)
    if kind == "static" and len(numbers) in (1, 2) and all(part.isdigit() and int(part) for part in numbers):
        counts = [int(part) for part in numbers]
        roles = (Role.UNIFIED,) if len(counts) == 1 else (Role.PREFILL, Role.DECODE)
        return Static(text, dict(zip(roles, counts, strict=True)))
    raise PolicyNameError(f"policy {text!r} is unknown; known: ours, static:N, static:P:D, reactive (N, P, D >= 1)")
