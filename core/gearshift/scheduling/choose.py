# SPDX-License-Identifier: Apache-2.0
"""Which pod serves a request: least load among the most trusted pods that admit, and whether prefill and decode are
split.

The functions read pods through `Candidate`, so the router passes its live records and the simulation its own, without
copies.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from random import Random
from typing import Generic, Protocol, TypeVar

from gearshift.api.vocabulary import Role


class Trust(IntEnum):
    """How much is known about a pod; a lower value always wins over less load."""

    FRESH = 0  # its state stream is live
    STALE = 1  # its state stream is lost since a moment: the last known state is used
    UNHEARD = 2  # its state stream is lost for so long that its sidecar may have changed the pod without a word
    SUSPECT = 3  # a connection to its engine failed a moment ago


class Path(StrEnum):
    """How a request is served."""

    WHOLE = "whole"  # one pod, no pod has a split role
    SPLIT = "split"  # prefill on one pod, decode on another
    FALLBACK = "fallback"  # one pod, because the other role has no pod that admits
    UNSPLITTABLE = "unsplittable"  # one pod, because the request can't be split


class Candidate(Protocol):
    """A pod as the choice sees it."""

    @property
    def admitting(self) -> bool:
        """New requests are welcome."""

    @property
    def role(self) -> Role:
        """Phase of a request that the pod serves."""

    @property
    def trust(self) -> Trust:
        """How much is known about it."""

    @property
    def in_flight(self) -> int:
        """Requests of the caller that the pod still owes."""

    @property
    def reported(self) -> int:
        """Requests that its engines report, running and waiting."""


C = TypeVar("C", bound=Candidate)


@dataclass(frozen=True, slots=True)
class Whole(Generic[C]):
    """One pod serves the whole request."""

    pod: C
    path: Path = Path.WHOLE


@dataclass(frozen=True, slots=True)
class Split(Generic[C]):
    """One pod fills the KV cache, another one generates from it."""

    prefill: C
    decode: C


Route = Whole[C] | Split[C]


def load(pod: Candidate) -> int:
    """Requests that weigh on ``pod``: the caller's own, known at once, and the reported ones, known a moment later."""
    return pod.in_flight + pod.reported


def least_load(pods: Iterable[C], rng: Random) -> C | None:
    """Least loaded pod among the most trusted that admit; ties are broken by ``rng``. None when no pod admits."""
    best: list[C] = []
    best_rank = (0, 0)
    for pod in pods:
        if not pod.admitting:
            continue
        rank = (pod.trust, pod.in_flight + pod.reported)
        if not best or rank < best_rank:
            best, best_rank = [pod], rank
        elif rank == best_rank:
            best.append(pod)
    if len(best) > 1:
        return best[int(rng.random() * len(best))]
    return best[0] if best else None


def always() -> bool:
    """Every request can be split."""
    return True


def choose_route(pods: Iterable[C], rng: Random, splittable: Callable[[], bool] = always) -> Route[C] | None:
    """Pod, or pair of pods, for one request; ``splittable`` is asked only where roles are split. None when no pod
    admits.

    Roles are split as soon as one pod that admits is a Prefill or a Decode pod. Unified pods compete with the pair by
    load: a pair is as loaded as the more loaded of its two. Every engine can serve whole requests, so a missing role
    costs speed, never the request.
    """
    unified_pods, prefill_pods, decode_pods = _by_role(pods)
    unified = least_load(unified_pods, rng)
    if not prefill_pods and not decode_pods:
        return Whole(unified) if unified else None
    prefill, decode = least_load(prefill_pods, rng), least_load(decode_pods, rng)
    can_split = splittable()
    if prefill and decode and can_split:
        pair = Split(prefill, decode)
        return Whole(unified) if unified and _lighter(unified, pair) else pair
    return _whole_among_split(unified, decode, prefill, Path.FALLBACK if can_split else Path.UNSPLITTABLE)


def _by_role(pods: Iterable[C]) -> tuple[list[C], list[C], list[C]]:
    unified: list[C] = []
    prefill: list[C] = []
    decode: list[C] = []
    for pod in pods:
        if pod.admitting:
            role = pod.role
            (unified if role is Role.UNIFIED else prefill if role is Role.PREFILL else decode).append(pod)
    return unified, prefill, decode


def _whole_among_split(unified: C | None, decode: C | None, prefill: C | None, path: Path) -> Whole[C] | None:
    """The pod that serves a whole request best: made for it, else made for its long part, else the rest; trusted ones
    first.
    """
    ordered = [pod for pod in (unified, decode, prefill) if pod is not None]
    if not ordered:
        return None
    pod = min(ordered, key=lambda candidate: candidate.trust)
    return Whole(pod, Path.WHOLE if pod is unified and path is Path.FALLBACK else path)


def _lighter(unified: Candidate, pair: Split[C]) -> bool:
    """Whether one unified pod is a better place than the pair."""
    prefill, decode = pair.prefill, pair.decode
    return (unified.trust, load(unified)) < (max(prefill.trust, decode.trust), max(load(prefill), load(decode)))
