# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of a sidecar, in a registry of its own."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from gearshift.api.vocabulary import PodPhase
from gearshift.api.wire import TransitionStatus
from gearshift.sidecar.ledger import Record
from gearshift.sidecar.machine import PHASES

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
_PREFIX: Final = "gearshift_sidecar"
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Metrics:
    """What the sidecar counts and measures."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._transitions = Counter(
            f"{_PREFIX}_transitions", "Finished transitions", ["kind", "to", "result"], registry=self.registry
        )
        self._duration = Histogram(
            f"{_PREFIX}_transition_duration_seconds",
            "Time from the order to the end of a transition",
            ["kind", "result"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._phase_duration = Histogram(
            f"{_PREFIX}_phase_duration_seconds",
            "Time that a transition spent in each phase",
            ["kind", "phase"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._probe = Histogram(
            f"{_PREFIX}_probe_seconds",
            "Time to answer a probe request",
            ["engine"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._restarts = Counter(
            f"{_PREFIX}_engine_restarts", "Engine processes started again", ["engine"], registry=self.registry
        )
        self._phase = self._gauge("phase", "1 for the present phase", ["phase"])
        self._layout = self._gauge("layout", "1 for the present layout", ["layout"])
        self._role = self._gauge("role", "1 for the present role", ["role"])
        self._epoch = self._gauge("epoch", "Committed transitions of this pod", [])
        self._admitting = self._gauge("admitting", "1 while new requests are welcome", [])
        self._routers = self._gauge("routers_connected", "Routers that hold a state stream", [])

    def probed(self, engine: str, seconds: float) -> None:
        """A probe request was answered."""
        self._probe.labels(engine).observe(seconds)

    def restarted(self, engine: str) -> None:
        """An engine process was started again."""
        self._restarts.labels(engine).inc()

    def routers(self, connected: int) -> None:
        """Number of routers that hold a stream."""
        self._routers.set(connected)

    def state(self, record: Record) -> None:
        """Show the record's state."""
        for phase in PHASES:
            self._phase.labels(phase.value).set(phase is record.phase)
        self._layout.clear()
        self._layout.labels(record.layout.value).set(1)
        self._role.clear()
        self._role.labels(record.role.value).set(1)
        self._epoch.set(record.epoch)
        self._admitting.set(record.admitting)

    def finished(self, status: TransitionStatus) -> None:
        """Count a transition that has ended."""
        kind, result = status.kind.value, status.result.value
        self._transitions.labels(kind, status.to, result).inc()
        if status.finished_at is not None:
            self._duration.labels(kind, result).observe(max(0.0, status.finished_at - status.started_at))
        for phase, seconds in status.seconds_by_phase.items():
            self._phase_duration.labels(kind, PodPhase(phase).value).observe(seconds)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _gauge(self, name: str, text: str, labels: list[str]) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", text, labels, registry=self.registry)
