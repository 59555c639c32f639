# SPDX-License-Identifier: Apache-2.0
"""One pod of the fleet: its engine replicas, its phases, and the face that the router and the operator see."""

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.capacity import kv_capacity_tokens, shift_threshold_tokens
from gearshift.perf.step import StepLoad, step_seconds
from gearshift.policy.snapshot import PodView
from gearshift.scheduling.choose import Trust
from gearshift.sim.fleet.counters import Counters
from gearshift.sim.fleet.replica import Limits, Replica
from gearshift.sim.fleet.request import Request
from gearshift.sim.fleet.settings import FleetSettings


class SimPod:
    """A pod. It is a `Candidate` of the scheduling code."""

    def __init__(
        self, ordinal: int, serial: int, spec: InferenceServiceSpec, settings: FleetSettings, role: Role, layout: Layout
    ) -> None:
        self.ordinal = ordinal
        self.uid = f"uid-{serial}"
        self.name = f"sim-{ordinal}"
        self.role = role
        self.layout = layout
        self.epoch = 0
        self.phase = PodPhase.STARTING
        self.created_at = 0.0
        self.since = 0.0
        self.deleting = False
        self.gone_at: float | None = None
        self.in_flight = 0
        self.trust = Trust.FRESH
        self.counters = Counters()
        self.replicas: list[Replica] = []
        self._spec = spec
        self._settings = settings
        self.arrange(layout)

    @property
    def admitting(self) -> bool:
        """New requests are welcome."""
        return self.phase is PodPhase.SERVING and not self.deleting

    @property
    def reported(self) -> int:
        """Requests that its engines report."""
        return self.running + self.waiting

    @property
    def running(self) -> int:
        """Requests in the batches."""
        return sum(replica.running for replica in self.replicas)

    @property
    def waiting(self) -> int:
        """Requests in the queues."""
        return sum(len(replica.waiting) for replica in self.replicas)

    @property
    def kv_usage(self) -> float:
        """Used share of the KV cache of the fullest replica, 0..1."""
        return max(replica.kv_used / replica.limits.kv_tokens for replica in self.replicas)

    @property
    def idle(self) -> bool:
        """Owes nothing."""
        return not self.in_flight and all(replica.idle for replica in self.replicas)

    def arrange(self, layout: Layout) -> None:
        """Take a layout; only while idle."""
        self.layout = layout
        profile, settings = self._settings.profile, self._settings
        shape = arrangement(self._spec, settings, layout)
        limits = Limits(
            max(1, kv_capacity_tokens(profile, shape)), settings.max_num_batched_tokens, settings.max_num_seqs
        )

        def time(load: StepLoad) -> float:
            return step_seconds(profile, shape, load)

        self.replicas = [Replica(limits, self.counters, time) for _ in range(shape.replicas)]

    def take(self, request: Request, now: float, *, prefill_only: bool) -> Replica:
        """Queue a request at the least loaded replica; returns it."""
        replica = min(self.replicas, key=lambda each: each.load)
        replica.prefill_only = prefill_only
        replica.submit(request, now)
        return replica

    def view(self, layouts: tuple[Layout, ...]) -> PodView:
        """As the operator sees it."""
        return PodView(
            name=self.name,
            uid=self.uid,
            ordinal=self.ordinal,
            revision="r",
            role=self.role,
            layout=self.layout,
            epoch=self.epoch,
            phase=self.phase,
            ready=self.phase is not PodPhase.STARTING,
            created_at=self.created_at,
            since=self.since,
            deleting=self.deleting,
            layouts=layouts,
            running=self.running,
            waiting=self.waiting,
            kv_usage=self.kv_usage,
        )


def arrangement(spec: InferenceServiceSpec, settings: FleetSettings, layout: Layout) -> Arrangement:
    """How the accelerators of a pod are arranged in a layout."""
    gpus = spec.pod.accelerators
    size = spec.parallelism.sequence_parallel_size or gpus
    threshold = spec.parallelism.shift_threshold_tokens
    if threshold is None:
        threshold = shift_threshold_tokens(settings.profile, gpus, size) if layout is Layout.SHIFT else 0
    return Arrangement(layout, gpus, size, threshold)
