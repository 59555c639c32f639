# SPDX-License-Identifier: Apache-2.0
"""What a run of a fleet came to: goodput under the objectives, GPU-hours, latencies, actions and reversals."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import PodPhase
from gearshift.policy.plan import Action, CreatePod, DeletePod, Transit
from gearshift.sim.fleet.pod import SimPod
from gearshift.sim.fleet.request import Request
from gearshift.sim.load.summary import quantile

REVERSAL_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Acted:
    """An action that was carried out. ``before`` is the layout or role that a transition left."""

    at: float
    action: Action
    before: str = ""

    @property
    def direction(self) -> tuple[str, str]:
        """What it changes, and where to; the opposite of ``reverse``."""
        match self.action:
            case CreatePod():
                return ("pods", "+")
            case DeletePod():
                return ("pods", "-")
            case Transit(kind=kind, to=to):
                return (kind.value, f"{self.before}>{to}")

    @property
    def reverse(self) -> tuple[str, str]:
        """Direction of an action that undoes it."""
        kind, way = self.direction
        if kind == "pods":
            return (kind, "-" if way == "+" else "+")
        left, right = way.split(">")
        return (kind, f"{right}>{left}")


@dataclass(frozen=True, slots=True)
class Frame:
    """The fleet at one moment."""

    at: float
    pods: int
    serving: int
    running: int
    waiting: int
    kv_usage: float

    @classmethod
    def of(cls, at: float, pods: Sequence[SimPod], queued: int) -> "Frame":
        """Look at the pods."""
        serving = [pod for pod in pods if pod.phase is PodPhase.SERVING and not pod.deleting]
        usage = sum(pod.kv_usage for pod in serving) / max(1, len(serving))
        waiting = queued + sum(pod.waiting for pod in pods)
        return cls(at, len(pods), len(serving), sum(pod.running for pod in pods), waiting, usage)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run."""

    policy: str
    spec: InferenceServiceSpec
    requests: Sequence[Request]
    pods: Sequence[SimPod]
    acted: Sequence[Acted]
    frames: Sequence[Frame]
    seconds: float

    @property
    def good(self) -> int:
        """Requests served within both objectives."""
        objectives = self.spec.policy.objectives
        return sum(each.good(objectives.ttft.seconds, objectives.itl.seconds) for each in self.requests)

    @property
    def goodput(self) -> float:
        """Share of the requests served within both objectives."""
        return self.good / max(1, len(self.requests))

    @property
    def gpu_hours(self) -> float:
        """Of all pods, from creation to the end of their drain."""
        alive = sum((pod.gone_at if pod.gone_at is not None else self.seconds) - pod.created_at for pod in self.pods)
        return alive * self.spec.pod.accelerators / 3600

    @property
    def reversals(self) -> int:
        """Actions that undo one of the last `REVERSAL_SECONDS`."""
        return reversals(self.acted)

    def figures(self) -> dict[str, Any]:
        """JSON-ready."""
        ttfts = [each.ttft_seconds for each in self.requests if each.ttft_seconds is not None]
        itls = [each.itl_seconds for each in self.requests if each.itl_seconds is not None and each.output_tokens > 1]
        return {
            "policy": self.policy,
            "requests": len(self.requests),
            "good": self.good,
            "goodput": round(self.goodput, 5),
            "goodRequestsPerSecond": round(self.good / max(self.seconds, 1e-9), 4),
            "gpuHours": round(self.gpu_hours, 4),
            "ttftSeconds": _quantiles(ttfts),
            "itlSeconds": _quantiles(itls),
            "failed": dict(sorted(Counter(each.failed for each in self.requests if each.failed).items())),
            "actions": len(self.acted),
            "actionsByKind": dict(sorted(Counter(":".join(each.direction) for each in self.acted).items())),
            "reversals": self.reversals,
            "seconds": round(self.seconds, 1),
        }


def reversals(acted: Iterable[Acted]) -> int:
    """Actions that undo one of the last `REVERSAL_SECONDS`; several of one moment that undo the same count once."""
    last: dict[tuple[str, str], float] = {}
    counted: set[tuple[float, tuple[str, str]]] = set()
    for each in acted:
        undone = last.get(each.reverse)
        if undone is not None and each.at - undone < REVERSAL_SECONDS:
            counted.add((each.at, each.direction))
        last[each.direction] = each.at
    return len(counted)


def _quantiles(values: Sequence[float]) -> dict[str, float | None]:
    found = {name: quantile(values, share) for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))}
    return {name: None if value is None else round(value, 4) for name, value in found.items()}
