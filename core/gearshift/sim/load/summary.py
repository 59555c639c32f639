# SPDX-License-Identifier: Apache-2.0
"""Figures of a load: quantiles of latency, rates, failures by kind."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gearshift.sim.load.client import Outcome


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value below which ``share`` of the values lie (nearest rank); None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summarize(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """JSON-ready figures; latencies of successful requests in milliseconds, rates over the time from first to last."""
    good = [outcome for outcome in outcomes if not outcome.failure]
    first = min((outcome.sent_at for outcome in outcomes), default=0.0)
    last = max((outcome.sent_at + outcome.e2e_seconds for outcome in outcomes), default=0.0)
    seconds = max(last - first, 1e-9)
    return {
        "requests": len(outcomes),
        "failed": len(outcomes) - len(good),
        "failures": dict(sorted(Counter(outcome.failure for outcome in outcomes if outcome.failure).items())),
        "seconds": round(last - first, 3),
        "requests_per_second": round(len(good) / seconds, 3),
        "prompt_tokens_per_second": round(sum(outcome.prompt_tokens for outcome in good) / seconds, 1),
        "output_tokens_per_second": round(sum(outcome.completion_tokens for outcome in good) / seconds, 1),
        "ttft_ms": _quantiles([outcome.ttft_seconds for outcome in good if outcome.ttft_seconds is not None]),
        "itl_ms": _quantiles([gap for outcome in good for gap in outcome.gaps_seconds]),
        "e2e_ms": _quantiles([outcome.e2e_seconds for outcome in good]),
    }


def _quantiles(seconds: Sequence[float]) -> dict[str, float | None]:
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    values = {name: quantile(seconds, share) for name, share in shares.items()}
    return {name: None if value is None else round(value * 1000, 3) for name, value in values.items()}
