# SPDX-License-Identifier: Apache-2.0
"""Everything that a decision may know, gathered once by the operator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind, TransitionResult
from gearshift.policy.rates import EngineRates


class Signal(StrEnum):
    """Metrics that decisions read, each over ``policy.window``."""

    WAITING = "waiting"  # requests queued, sum over pods of the role
    RUNNING = "running"  # requests in the batch, sum
    KV_USAGE = "kv_usage"  # used share of KV cache, mean, 0..1
    REQUESTS = "requests_per_second"  # that get their first token
    PROMPT_TOKENS = "prompt_tokens_per_second"
    GENERATION_TOKENS = "generation_tokens_per_second"
    PREFIX_HITS = "prefix_hit_share"  # of prompt tokens, those whose KV was there already, 0..1
    TRANSFERS = "transfers_waiting"  # requests whose KV cache is on its way from a prefill pod, sum
    TTFT_P90 = "ttft_p90_seconds"
    ITL_P90 = "itl_p90_seconds"


@dataclass(frozen=True, slots=True)
class Reading:
    """Value of one signal. ``value`` None means unknown: neither idle nor busy; ``why`` names query and cause.

    A quantile or a share over a window without requests has no value either, but is `quiet`: the series are there and
    fresh.
    """

    value: float | None
    at: float = 0.0  # time of the newest sample, seconds since the epoch
    samples: int = 0
    query: str = ""
    why: str = ""
    quiet: bool = False  # value is None because nothing happened in the window


@dataclass(frozen=True, slots=True)
class Metrics:
    """Readings by signal and role; the key with role None is over the whole service."""

    readings: Mapping[tuple[Signal, Role | None], Reading] = field(default_factory=dict)

    def value(self, signal: Signal, role: Role | None = None) -> float | None:
        """Value of a signal, or None when it is unknown."""
        return self.reading(signal, role).value

    def reading(self, signal: Signal, role: Role | None = None) -> Reading:
        """Reading of a signal; one without value when it was never asked for."""
        return self.readings.get((signal, role)) or Reading(None, why="not queried")


@dataclass(frozen=True, slots=True)
class PodView:
    """One engine pod: what Kubernetes and its sidecar say."""

    name: str
    uid: str
    ordinal: int
    revision: str
    role: Role
    layout: Layout
    epoch: int
    phase: PodPhase  # UNKNOWN when the sidecar can't be asked
    ready: bool
    created_at: float
    since: float  # when its phase began
    deleting: bool = False
    failed: bool = False  # pod phase Failed or Succeeded, or its node is gone
    node_lost: bool = False
    layouts: tuple[Layout, ...] = ()
    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    shift_threshold_tokens: int | None = None  # in layout Shift, as its engine holds it

    @property
    def serving(self) -> bool:
        """Ready, and its sidecar admits requests."""
        return self.ready and not self.deleting and self.phase is PodPhase.SERVING


@dataclass(frozen=True, slots=True)
class InFlight:
    """A transition that was ordered and has not ended."""

    id: str
    pod: str
    kind: TransitionKind
    to: str
    started_at: float


@dataclass(frozen=True, slots=True)
class Ended:
    """A transition that has ended."""

    pod: str
    kind: TransitionKind
    from_: str
    to: str
    result: TransitionResult
    at: float
    retryable: bool = True  # of a failure: another try may succeed
    seconds: float = 0.0  # that it took, draining included

    @property
    def failed(self) -> bool:
        """It did not commit."""
        return self.result in (TransitionResult.ROLLED_BACK, TransitionResult.FAILED)


@dataclass(frozen=True, slots=True)
class NamespaceBudget:
    """Accelerators that all services of the namespace may hold together, and those that the other services hold."""

    limit: int
    others: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One service at one moment."""

    at: float
    namespace: str
    name: str
    uid: str
    generation: int
    spec: InferenceServiceSpec
    revision: str  # hash of the pod that the spec asks for now
    pods: tuple[PodView, ...] = ()
    metrics: Metrics = Metrics()
    in_flight: tuple[InFlight, ...] = ()
    approved: str | None = None  # plan id that a human approved
    approved_until: float | None = None  # None: as long as `gearshift.api.approval.APPROVAL_SECONDS`
    hold: bool = False  # hold annotation
    hold_note: str = ""  # why, as the annotation says it
    ended: tuple[Ended, ...] = ()  # transitions that ended, newest first, as far as status keeps them
    namespace_budget: NamespaceBudget | None = None  # None: no limit
    rates: Mapping[Layout, EngineRates] = field(default_factory=dict)  # of one pod by layout, where they are known
