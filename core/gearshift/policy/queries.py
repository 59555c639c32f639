# SPDX-License-Identifier: Apache-2.0
"""PromQL of every signal, over the series that vLLM and the Simulated engine export.

``config/prometheus`` gives each engine series the labels namespace, service, pod and instance (one a resident engine);
``engine`` is vLLM's own label for a data-parallel rank. A role is no label, because it changes: the pods whose sidecars
say that they have the role are named one by one instead.

A pod counts only while its series are steady: a series that came to its end within the range (a label changed, a
resident engine went, the pod is not scraped) would be added to its successor, and a counter that began anew hides what
was counted before. Such a pod reports nothing until the range holds the new series alone.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gearshift.policy.snapshot import Signal

DEFAULT_SCRAPE_SECONDS = 5.0
SAMPLES = 4
"""Scrapes that a range holds at least: a rate needs two, and one may fail."""
COVERAGE = 0.8
"""Least share of the pods that must report; with fewer the answer is empty, hence unknown."""
QUANTILE = 0.9

_SPECIAL = re.compile(r"([.+*?()|\[\]{}^$\\])")


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose series a query reads. ``pods`` are names of pods of the service; with none of them there is no query."""

    namespace: str
    pods: Sequence[str]
    window_seconds: float
    scrape_seconds: float = DEFAULT_SCRAPE_SECONDS

    @property
    def range(self) -> str:
        """The range of a query: the window, but never fewer than `SAMPLES` scrapes."""
        return f"{math.ceil(max(self.window_seconds, SAMPLES * self.scrape_seconds))}s"

    @property
    def matchers(self) -> str:
        """Label matchers without braces."""
        return f'namespace="{quoted(self.namespace)}",pod=~"{quoted(self.pod_pattern)}"'

    @property
    def pod_pattern(self) -> str:
        """A regular expression of RE2 that matches the names of the pods only."""
        return "|".join(_literal(pod) for pod in sorted(self.pods))

    @property
    def required(self) -> int:
        """Pods that must report."""
        return math.ceil(COVERAGE * len(self.pods))


def queries(scope: Scope) -> dict[Signal, str]:
    """An instant query for each signal, each with one number as its answer, or none when too few pods report.

    Raises:
        ValueError: the scope names no pod.
    """
    if not scope.pods:
        raise ValueError(f"no pods to query in namespace {scope.namespace!r}")
    return {signal: build(scope) for signal, build in _BUILDERS.items()}


def _waiting(scope: Scope) -> str:
    """Those that wait for capacity; vLLM also counts deferred ones, whose KV is still on its way."""
    return _total(scope, _gauge(scope, f'vllm:num_requests_waiting_by_reason{{{scope.matchers},reason="capacity"}}'))


def _transfers(scope: Scope) -> str:
    """The deferred ones: what a decode pod could run but for the KV cache that it waits for."""
    return _total(scope, _gauge(scope, f'vllm:num_requests_waiting_by_reason{{{scope.matchers},reason="deferred"}}'))


def _running(scope: Scope) -> str:
    return _total(scope, _gauge(scope, _series(scope, "num_requests_running")))


def _kv_usage(scope: Scope) -> str:
    """Mean over pods of the fullest rank: requests wait where it is full, and paused resident engines hold nothing."""
    return _covered(scope, _gauge(scope, _series(scope, "kv_cache_usage_perc"), "max"), "avg({})")


def _requests(scope: Scope) -> str:
    """Requests that got their first token: each one once, when its prompt tokens are counted."""
    return _total(scope, _rate(scope, _series(scope, "time_to_first_token_seconds_count")))


def _prompt_tokens(scope: Scope) -> str:
    return _total(scope, _rate(scope, _series(scope, "prompt_tokens_total")))


def _generation_tokens(scope: Scope) -> str:
    return _total(scope, _rate(scope, _series(scope, "generation_tokens_total")))


def _prefix_hits(scope: Scope) -> str:
    """Not a number while no prompt is read in the range."""
    prompts = _rate(scope, _series(scope, "prompt_tokens_total"))
    hits = _rate(scope, _series(scope, "prompt_tokens_cached_total"))
    return f"sum({hits}) / sum({prompts}) and on () (count({prompts}) >= {scope.required})"


def _ttft(scope: Scope) -> str:
    return _quantile(scope, "time_to_first_token_seconds")


def _itl(scope: Scope) -> str:
    return _quantile(scope, "inter_token_latency_seconds")


_BUILDERS: dict[Signal, Callable[[Scope], str]] = {
    Signal.WAITING: _waiting,
    Signal.RUNNING: _running,
    Signal.KV_USAGE: _kv_usage,
    Signal.REQUESTS: _requests,
    Signal.PROMPT_TOKENS: _prompt_tokens,
    Signal.GENERATION_TOKENS: _generation_tokens,
    Signal.TTFT_P90: _ttft,
    Signal.ITL_P90: _itl,
    Signal.PREFIX_HITS: _prefix_hits,
    Signal.TRANSFERS: _transfers,
}


def _series(scope: Scope, name: str) -> str:
    return f"vllm:{name}{{{scope.matchers}}}"


def _gauge(scope: Scope, series: str, over_engines: str = "sum") -> str:
    """Mean over the range by pod, of pods whose series are all of now."""
    steady = f"count by (pod) ({series}) == count by (pod) (count_over_time({series}[{scope.range}]))"
    return f"{over_engines} by (pod) (avg_over_time({series}[{scope.range}])) and ({steady})"


def _rate(scope: Scope, series: str) -> str:
    """Growth per second by pod, of pods none of whose counters began anew or ended within the range."""
    return f"sum by (pod) (rate({series}[{scope.range}])) {_unbroken(scope, series)}"


def _unbroken(scope: Scope, series: str) -> str:
    steady = f"count by (pod) ({series}) == count by (pod) (count_over_time({series}[{scope.range}]))"
    return f"and ({steady}) unless (max by (pod) (resets({series}[{scope.range}])) > 0)"


def _total(scope: Scope, per_pod: str) -> str:
    """Sum over all pods; pods that do not report count as the mean of those that do."""
    return _covered(scope, per_pod, f"avg({{}}) * {len(scope.pods)}")


def _covered(scope: Scope, per_pod: str, outer: str) -> str:
    return f"{outer.format(per_pod)} and (count({per_pod}) >= {scope.required})"


def _quantile(scope: Scope, name: str) -> str:
    """Quantile over all pods together; not a number while no request ends in the range."""
    bucket, count = _series(scope, name + "_bucket"), _series(scope, name + "_count")
    counted = _rate(scope, count)
    rates = f"sum by (pod, le) (rate({bucket}[{scope.range}])) and on (pod) ({counted})"
    covered = f"count({counted}) >= {scope.required}"
    return f"histogram_quantile({QUANTILE}, sum by (le) ({rates})) and on () ({covered})"


def _literal(value: str) -> str:
    """A regular expression of RE2 that matches ``value`` only."""
    return _SPECIAL.sub(r"\\\1", value)


def quoted(value: str) -> str:
    """``value`` inside a double-quoted PromQL string."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
