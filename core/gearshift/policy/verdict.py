# SPDX-License-Identifier: Apache-2.0
"""What one decision about layout or role wants, before guards and arbiter have their say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gearshift.api import reasons
from gearshift.api.vocabulary import Role
from gearshift.policy import tuning
from gearshift.policy.plan import Hold, Memory, Transit
from gearshift.policy.snapshot import Metrics, PodView, Signal


class Source(StrEnum):
    """Where a wish comes from; it selects the chain of guards and whether actuation applies."""

    POLICY = "Policy"  # load says so
    BRIDGE = "Bridge"  # the pod that a bridge stands in for has come
    BOUNDS = "Bounds"  # a role's floor or ceiling in the spec says so
    SPEC = "Spec"  # a setting of the spec that is carried out live says so
    OVERRIDE = "Override"  # a human says so


@dataclass(frozen=True, slots=True)
class Verdict:
    """``candidates`` in order of preference, one of which may act; or ``hold``.

    ``inputs`` are the numbers behind it, ``evidence`` the key in `Memory.evidence_since` that must be old enough (None:
    an order that needs no evidence), ``message`` says why in a sentence.
    """

    candidates: tuple[Transit, ...] = ()
    hold: Hold | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    evidence: str | None = None
    message: str = ""
    source: Source = Source.POLICY
    windows: float = tuning.EVIDENCE_WINDOWS  # for which it must have been wanted


STEADY = Hold(reasons.STEADY)


def number(value: float) -> str:
    """Short form of a number for people."""
    return f"{value:.4g}"


def missing(metrics: Metrics, signal: Signal, role: Role | None = None) -> Hold:
    """Hold that names the signal, the query and why its value is unknown."""
    reading = metrics.reading(signal, role)
    of = f" of role {role}" if role else ""
    query = f"; query {reading.query}" if reading.query else ""
    return Hold(reasons.METRICS_MISSING, f"{signal}{of} is unknown: {reading.why or 'no reason given'}{query}")


def by_rest(pods: Iterable[PodView], memory: Memory) -> list[PodView]:
    """Pods in the order in which they should change: longest since the last transition, then the highest ordinal.

    Load is left out on purpose: it differs at every tick, and so would the plan's id that a human is asked to approve.
    """
    return sorted(pods, key=lambda pod: (memory.transition_at.get(pod.name, 0.0), -pod.ordinal))
