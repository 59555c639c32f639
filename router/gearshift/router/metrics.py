# SPDX-License-Identifier: Apache-2.0
"""What Prometheus learns from a router. Labels are bounded: routes, statuses and reasons of this code, and pods that
exist now.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from gearshift.router.fleet import Fleet

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
CLIENT_GONE: Final = 499  # the code of a request whose client left before its answer was complete
TTFT_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
DURATION_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class Metrics:
    """All series of one router, in a registry of their own."""

    def __init__(
        self, fleet: Fleet, in_flight: Callable[[], int], queued: Callable[[], int], connections: Callable[[], int]
    ) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        registry = self.registry
        self.requests = Counter("gearshift_router_requests", "Requests answered.", ["route", "code"], registry=registry)
        self.duration = Histogram(
            "gearshift_router_request_duration_seconds",
            "Request read to last byte.",
            ["route"],
            buckets=DURATION_BUCKETS,
            registry=registry,
        )
        self.ttft = Histogram(
            "gearshift_router_time_to_first_token_seconds",
            "Request read to first byte of a streamed answer.",
            buckets=TTFT_BUCKETS,
            registry=registry,
        )
        self.retries = Counter(
            "gearshift_router_retries",
            "Attempts at a pod that failed before the first byte.",
            ["reason"],
            registry=registry,
        )
        self.paths = Counter(
            "gearshift_router_pd_requests",
            "Attempts by the way in which roles share them.",
            ["path"],
            registry=registry,
        )
        self.broken = Counter(
            "gearshift_router_broken_streams", "Streams whose pod was lost after the first byte.", registry=registry
        )
        Gauge("gearshift_router_in_flight", "Requests held now.", registry=registry).set_function(in_flight)
        Gauge("gearshift_router_queue", "Of them, waiting for a pod that admits.", registry=registry).set_function(
            queued
        )
        Gauge("gearshift_router_connections", "Client connections open now.", registry=registry).set_function(
            connections
        )
        registry.register(FleetCollector(fleet))
        self._answered: dict[tuple[str, int], Counter] = {}
        self._durations: dict[str, Histogram] = {}

    def answered(self, route: str, code: int, seconds: float) -> None:
        """Count one request. Label children are kept, since looking them up costs more than counting."""
        counter = self._answered.get((route, code))
        if counter is None:
            counter = self._answered[route, code] = self.requests.labels(route, str(code))
        duration = self._durations.get(route)
        if duration is None:
            duration = self._durations[route] = self.duration.labels(route)
        counter.inc()
        duration.observe(seconds)

    def page(self) -> bytes:
        """Exposition text."""
        return generate_latest(self.registry)


class FleetCollector(Collector):
    """Series of the pods that exist at the time of the scrape, so that none outlives its pod."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read the fleet."""
        admitting = GaugeMetricFamily(
            "gearshift_router_pod_admitting", "1: the pod gets new requests.", labels=["pod", "role"]
        )
        in_flight = GaugeMetricFamily(
            "gearshift_router_pod_in_flight", "Requests of this router that the pod owes.", labels=["pod"]
        )
        age = GaugeMetricFamily(
            "gearshift_router_pod_state_age_seconds", "Time since the pod's sidecar was last heard.", labels=["pod"]
        )
        now = time.monotonic()
        for pod in self._fleet.pods.values():
            name = pod.endpoint.name
            admitting.add_metric([name, pod.role.value], float(pod.admitting))
            in_flight.add_metric([name], pod.in_flight)
            if pod.state is not None:
                age.add_metric([name], now - pod.heard_at)
        yield admitting
        yield in_flight
        yield age
