# SPDX-License-Identifier: Apache-2.0
"""vLLM's metrics of the simulated engine: its names, labels and buckets, in real seconds.

A series that has been shown once is shown until the process ends: after a switch to a layout with fewer replicas, the
gauges of those gone say 0 and their counters stand still.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gearshift.sim.engine.core import EngineCore
from gearshift.sim.engine.requests import Request

_LATENCY: Final = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0,
    30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip
_FIRST_TOKEN: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0,
    2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
_TOKEN: Final = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0,
    2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
_STEP: Final = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
_COUNTS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000)

_HISTOGRAMS: Final = {
    "vllm:time_to_first_token_seconds": ("Histogram of time to first token in seconds.", _FIRST_TOKEN),
    "vllm:inter_token_latency_seconds": ("Histogram of inter-token latency in seconds.", _TOKEN),
    "vllm:request_time_per_output_token_seconds": ("Histogram of time_per_output_token_seconds per request.", _TOKEN),
    "vllm:e2e_request_latency_seconds": ("Histogram of e2e request latency in seconds.", _LATENCY),
    "vllm:request_queue_time_seconds": ("Histogram of time spent in WAITING phase for request.", _LATENCY),
    "vllm:request_inference_time_seconds": ("Histogram of time spent in RUNNING phase for request.", _LATENCY),
    "vllm:request_prefill_time_seconds": ("Histogram of time spent in PREFILL phase for request.", _LATENCY),
    "vllm:request_decode_time_seconds": ("Histogram of time spent in DECODE phase for request.", _LATENCY),
    "vllm:request_prompt_tokens": ("Number of prefill tokens processed.", _COUNTS),
    "vllm:request_generation_tokens": ("Number of generation tokens processed.", _COUNTS),
    "vllm:request_params_max_tokens": ("Histogram of the max_tokens request parameter.", _COUNTS),
    "vllm:iteration_tokens_total": ("Histogram of number of tokens per engine_step.", _STEP),
}
_COUNTERS: Final = {
    "vllm:num_preemptions": "Cumulative number of preemption from the engine.",
    "vllm:prompt_tokens": "Number of prefill tokens processed.",
    "vllm:prompt_tokens_cached": "Number of cached prompt tokens (local + external).",
    "vllm:generation_tokens": "Number of generation tokens processed.",
    "vllm:external_prefix_cache_queries": "External prefix cache queries from KV connector, in terms of tokens.",
    "vllm:external_prefix_cache_hits": "External prefix cache hits from KV connector, in terms of tokens.",
    "vllm:nixl_num_failed_transfers": "Number of failed NIXL KV Cache transfers.",
    "vllm:nixl_num_kv_expired_reqs": "Number of requests that had their KV expire.",
}
_FINISHED_REASONS: Final = ("stop", "length", "abort", "error")
_SOURCES: Final = ("local_compute", "local_cache_hit", "external_kv_transfer")


class _Histogram:
    """Counts by bucket of one series."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count ``value``."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def add_to(self, family: HistogramMetricFamily, labels: list[str]) -> None:
        """Give the cumulative buckets to ``family``."""
        total, buckets = 0, []
        for bound, count in zip([*map(float, self._bounds), float("inf")], self._counts, strict=True):
            total += count
            buckets.append(("+Inf" if bound == float("inf") else str(bound), total))
        family.add_metric(labels, buckets, self._sum)


class _Series:
    """Counters and histograms of one replica."""

    def __init__(self) -> None:
        self.counters = dict.fromkeys(_COUNTERS, 0)
        self.finished = dict.fromkeys(_FINISHED_REASONS, 0)
        self.sources = dict.fromkeys(_SOURCES, 0)
        self.histograms = {name: _Histogram(bounds) for name, (_, bounds) in _HISTOGRAMS.items()}


class EngineMetrics(Collector):
    """Observer of the core and collector of the registry."""

    def __init__(self, model: str, speed: float) -> None:
        self._model = model
        self._speed = speed
        self._series: defaultdict[int, _Series] = defaultdict(_Series)
        self._cache_configs: set[tuple[int, int, int]] = set()  # (replica, block tokens, blocks) seen so far
        self._core: EngineCore | None = None
        self._transferring: Callable[[], int] = lambda: 0

    def watch(self, core: EngineCore, transferring: Callable[[], int]) -> None:
        """Read gauges from ``core``, and from ``transferring`` the requests whose KV is on its way."""
        self._core, self._transferring = core, transferring

    def count(self, name: str, replica: int = 0, by: int = 1) -> None:
        """Add ``by`` to the counter ``name``."""
        self._series[replica].counters[name] += by

    def on_step(self, replica: int, tokens: int) -> None:
        """See `Observer`."""
        self._series[replica].histograms["vllm:iteration_tokens_total"].observe(tokens)

    def on_token(self, request: Request, now: float) -> None:
        """See `Observer`."""
        series = self._series[request.replica]
        series.counters["vllm:generation_tokens"] += 1
        if request.last_token_at is not None:
            series.histograms["vllm:inter_token_latency_seconds"].observe((now - request.last_token_at) / self._speed)
            return
        series.histograms["vllm:time_to_first_token_seconds"].observe((now - request.arrived_at) / self._speed)
        series.counters["vllm:prompt_tokens"] += request.prompt_tokens
        external = min(request.remote_tokens, request.prompt_tokens - 1)
        series.counters["vllm:prompt_tokens_cached"] += external
        series.sources["external_kv_transfer"] += external
        series.sources["local_compute"] += request.prompt_tokens - external

    def on_finish(self, request: Request) -> None:
        """See `Observer`."""
        series = self._series[request.replica]
        series.finished[request.finish_reason] += 1
        for name, value in _lifetime(request).items():
            series.histograms[name].observe(value / self._speed)
        series.histograms["vllm:request_prompt_tokens"].observe(request.prompt_tokens)
        series.histograms["vllm:request_generation_tokens"].observe(request.generated_tokens)
        series.histograms["vllm:request_params_max_tokens"].observe(request.max_tokens)

    def on_preempt(self, request: Request) -> None:
        """See `Observer`."""
        self.count("vllm:num_preemptions", request.replica)

    def on_expire(self, replica: int) -> None:
        """See `Observer`."""
        self.count("vllm:nixl_num_kv_expired_reqs", replica)

    def collect(self) -> Iterator[Metric]:
        """All series of all replicas that this process has had."""
        assert self._core is not None
        for replica in self._core.replicas:
            self._series[replica.index]  # makes the series of a new replica
        yield from self._gauges(self._core)
        yield from self._counter_families()
        yield from self._histogram_families()
        yield self._cache_config(self._core)

    def _gauges(self, core: EngineCore) -> Iterator[Metric]:
        replicas = {replica.index: replica for replica in core.replicas}
        running = self._gauge("vllm:num_requests_running", "Number of requests in model execution batches.")
        waiting = self._gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.")
        reasons = self._gauge("vllm:num_requests_waiting_by_reason", "Number of waiting requests by reason.", "reason")
        usage = self._gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.")
        for index in sorted(self._series):
            replica, labels = replicas.get(index), [self._model, str(index)]
            queued = len(replica.waiting) if replica else 0
            deferred = self._transferring() if index == 0 else 0
            running.add_metric(labels, len(replica.running) if replica else 0)
            waiting.add_metric(labels, queued + deferred)
            reasons.add_metric([*labels, "capacity"], queued)
            reasons.add_metric([*labels, "deferred"], deferred)
            usage.add_metric(labels, replica.pool.usage if replica else 0.0)
        yield from (running, waiting, reasons, usage)

    def _counter_families(self) -> Iterator[Metric]:
        for name, text in _COUNTERS.items():
            family = CounterMetricFamily(name, text, labels=["model_name", "engine"])
            for index, series in sorted(self._series.items()):
                family.add_metric([self._model, str(index)], series.counters[name])
            yield family
        yield self._split("vllm:request_success", "Count of successfully processed requests.", "finished_reason")
        yield self._split("vllm:prompt_tokens_by_source", "Number of prompt tokens by source.", "source")

    def _split(self, name: str, text: str, label: str) -> Metric:
        family = CounterMetricFamily(name, text, labels=["model_name", "engine", label])
        for index, series in sorted(self._series.items()):
            values = series.finished if label == "finished_reason" else series.sources
            for key, value in values.items():
                family.add_metric([self._model, str(index), key], value)
        return family

    def _histogram_families(self) -> Iterator[Metric]:
        for name, (text, _) in _HISTOGRAMS.items():
            family = HistogramMetricFamily(name, text, labels=["model_name", "engine"])
            for index, series in sorted(self._series.items()):
                series.histograms[name].add_to(family, [self._model, str(index)])
            yield family

    def _cache_config(self, core: EngineCore) -> Metric:
        present = {(each.index, each.pool.block_tokens, each.pool.capacity_blocks) for each in core.replicas}
        self._cache_configs |= present
        labels = ["model_name", "engine", "block_size", "num_gpu_blocks", "cache_dtype", "enable_prefix_caching"]
        family = GaugeMetricFamily("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", labels=labels)
        for index, block_tokens, blocks in sorted(self._cache_configs):
            values = [self._model, str(index), str(block_tokens), str(blocks), "auto", "False"]
            family.add_metric(values, float((index, block_tokens, blocks) in present))
        return family

    def _gauge(self, name: str, text: str, *more_labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(name, text, labels=["model_name", "engine", *more_labels])


def _lifetime(request: Request) -> dict[str, float]:
    """Durations of a request that is done, in model seconds, as far as it got."""
    assert request.finished_at is not None
    durations = {"vllm:e2e_request_latency_seconds": request.finished_at - request.arrived_at}
    if request.scheduled_at is None:
        return durations
    durations["vllm:request_queue_time_seconds"] = request.scheduled_at - request.arrived_at
    durations["vllm:request_inference_time_seconds"] = request.finished_at - request.scheduled_at
    if request.first_token_at is None or request.last_token_at is None:
        return durations
    durations["vllm:request_prefill_time_seconds"] = request.first_token_at - request.scheduled_at
    decode_seconds = request.last_token_at - request.first_token_at
    durations["vllm:request_decode_time_seconds"] = decode_seconds
    if request.generated_tokens > 1:
        durations["vllm:request_time_per_output_token_seconds"] = decode_seconds / (request.generated_tokens - 1)
    return durations
