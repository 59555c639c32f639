# SPDX-License-Identifier: Apache-2.0
"""Metrics of the operator and the small server for them and for its probes."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Metrics:
    """Everything that the operator counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconcile_seconds = Histogram(
            "gearshift_operator_reconcile_duration_seconds",
            "Time of one tick of one service.",
            ["result"],
            registry=self.registry,
            buckets=(0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
        )
        self.decisions = Counter(
            "gearshift_operator_decisions_total",
            "Decisions by what they do, counted when they change.",
            ["namespace", "service", "action", "reason"],
            registry=self.registry,
        )
        self.transitions = Counter(
            "gearshift_operator_transitions_total",
            "Transitions that ended.",
            ["namespace", "service", "kind", "from", "to", "result"],
            registry=self.registry,
        )
        self.status_writes = Counter(
            "gearshift_operator_status_writes_total",
            "Writes of a status.",
            ["namespace", "service"],
            registry=self.registry,
        )
        self.leader = Gauge("gearshift_operator_leader", "1 while this process leads.", registry=self.registry)
        self.desired = Gauge(
            "gearshift_operator_pods_desired",
            "Pods that the service is to have: by its spec, or by the policy where that scales it.",
            ["namespace", "service"],
            registry=self.registry,
        )
        self.ready = Gauge(
            "gearshift_operator_pods_ready",
            "Pods that serve.",
            ["namespace", "service", "role"],
            registry=self.registry,
        )

        self.demand = Gauge(
            "gearshift_operator_demand_tokens_per_second",
            "Tokens per second that a phase is asked for; absent while it is not known.",
            ["namespace", "service", "phase"],
            registry=self.registry,
        )
        self.capacity = Gauge(
            "gearshift_operator_capacity_tokens_per_second",
            "Tokens per second that the serving pods of a phase could do; absent while it is not known.",
            ["namespace", "service", "phase"],
            registry=self.registry,
        )

    def phase(self, metric: Gauge, namespace: str, service: str, phase: str, value: float | None) -> None:
        """Set a gauge of a phase, or drop it while its value is not known."""
        if value is None:
            with contextlib.suppress(KeyError):  # some versions of the library complain when there is none
                metric.remove(namespace, service, phase)
        else:
            metric.labels(namespace, service, phase).set(value)

    def forget(self, namespace: str, service: str) -> None:
        """Drop the series of a service that is gone."""
        labels = {"namespace": namespace, "service": service}
        counters = (self.decisions, self.transitions, self.status_writes)
        for metric in (*counters, self.desired, self.ready, self.demand, self.capacity):
            metric.remove_by_labels(labels)


@asynccontextmanager
async def serve(metrics: Metrics, host: str, port: int, alive: Callable[[], bool]) -> AsyncIterator[int]:
    """Serve ``/metrics`` and ``/healthz``; yields the port."""

    async def show(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok\n") if alive() else web.Response(status=503, text="not alive\n")

    app = web.Application()
    app.add_routes([web.get("/metrics", show), web.get("/healthz", health)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
