# SPDX-License-Identifier: Apache-2.0
"""PromQL of every signal, over the series that vLLM and the Simulated engine export.

``config/prometheus`` gives each engine series the labels namespace, service, pod and instance (one a resident engine);
``engine`` is vLLM's own label for a data-parallel rank. A role is no label, because it changes: the pods whose sidecars
say that they have the role are named one by one instead.
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
        pods = "|".join(_literal(pod) for pod in sorted(self.pods))
        return f'namespace="{_quoted(self.namespace)}",pod=~"{_quoted(pods)}"'

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
    series = f'vllm:num_requests_waiting_by_reason{{{scope.matchers},reason="capacity"}}'
    return _total(scope, f"avg_over_time({series}[{scope.range}])")


def _running(scope: Scope) -> str:
    return _total(scope, f"avg_over_time({_series(scope, 'num_requests_running')}[{scope.range}])")


def _kv_usage(scope: Scope) -> str:
    """Mean over pods of the fullest rank: requests wait where it is full, and paused resident engines hold nothing."""
    usage = f"avg_over_time({_series(scope, 'kv_cache_usage_perc')}[{scope.range}])"
    return _covered(scope, f"max by (pod) ({usage})", "avg({})")


def _prompt_tokens(scope: Scope) -> str:
    return _total(scope, f"rate({_series(scope, 'prompt_tokens_total')}[{scope.range}])")


def _generation_tokens(scope: Scope) -> str:
    return _total(scope, f"rate({_series(scope, 'generation_tokens_total')}[{scope.range}])")


def _ttft(scope: Scope) -> str:
    return _quantile(scope, "time_to_first_token_seconds")


def _itl(scope: Scope) -> str:
    return _quantile(scope, "inter_token_latency_seconds")


_BUILDERS: dict[Signal, Callable[[Scope], str]] = {
    Signal.WAITING: _waiting,
    Signal.RUNNING: _running,
    Signal.KV_USAGE: _kv_usage,
    Signal.PROMPT_TOKENS: _prompt_tokens,
    Signal.GENERATION_TOKENS: _generation_tokens,
    Signal.TTFT_P90: _ttft,
    Signal.ITL_P90: _itl,
}


def _series(scope: Scope, name: str) -> str:
    return f"vllm:{name}{{{scope.matchers}}}"


def _total(scope: Scope, per_series: str) -> str:
    """Sum over all pods; pods that do not report count as the mean of those that do."""
    return _covered(scope, f"sum by (pod) ({per_series})", f"avg({{}}) * {len(scope.pods)}")


def _covered(scope: Scope, per_pod: str, outer: str) -> str:
    return f"{outer.format(per_pod)} and (count({per_pod}) >= {scope.required})"


def _quantile(scope: Scope, name: str) -> str:
    """Quantile over all pods together; not a number while no request ends in the range."""
    bucket = f"rate({_series(scope, name + '_bucket')}[{scope.range}])"
    covered = f"count(sum by (pod) ({bucket})) >= {scope.required}"
    return f"histogram_quantile({QUANTILE}, sum by (le) ({bucket})) and on () ({covered})"


def _literal(value: str) -> str:
    """A regular expression of RE2 that matches ``value`` only."""
    return _SPECIAL.sub(r"\\\1", value)


def _quoted(value: str) -> str:
    """``value`` inside a double-quoted PromQL string."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
