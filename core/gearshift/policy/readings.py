# SPDX-License-Identifier: Apache-2.0
"""Prometheus' answers as readings: a number, or unknown with the cause. Nothing unknown ever becomes a zero."""

import math
from typing import Any

from gearshift.policy.snapshot import Reading, Signal

QUIET = frozenset({Signal.TTFT_P90, Signal.ITL_P90, Signal.PREFIX_HITS})
"""Signals whose answer is NaN when nothing happened: `Reading.quiet`."""
SHARES = frozenset({Signal.KV_USAGE, Signal.PREFIX_HITS})
"""Signals between 0 and 1."""
SHARE_SLACK = 0.02
"""A share may be above 1 by so much: its counters are not read at one instant. It then is 1."""
NO_SERIES = "no series: too few pods report"


def reading(
    signal: Signal, body: Any, query: str, at: float, max_age_seconds: float, no_series: str = NO_SERIES
) -> Reading:
    """The reading that ``body``, a parsed answer of ``/api/v1/query``, stands for.

    | answer | value | why |
    |---|---|---|
    | one finite number, at most ``max_age_seconds`` before ``at`` | it | |
    | one number, older, or from the future by as much | None | names its age |
    | NaN of a quantile or a share | None, quiet | no requests in the window |
    | NaN or infinite | None | names it |
    | below 0 | None | names it |
    | a share above 1 by at most `SHARE_SLACK` | 1 | |
    | a share further above 1 | None | names it |
    | no series | None | ``no_series``: too few pods report, or their series are not steady |
    | several series | None | their number |
    | an error, or anything else | None | Prometheus' words |

    ``at`` is seconds since the epoch. Never raises.
    """
    try:
        samples = _samples(body)
    except _UnreadableError as problem:
        return Reading(None, query=query, why=str(problem))
    if len(samples) != 1:
        why = no_series if not samples else f"{len(samples)} series where one was expected"
        return Reading(None, samples=len(samples), query=query, why=why)
    when, value = samples[0]
    age = at - when
    if abs(age) > max_age_seconds:
        return Reading(None, when, 1, query, f"newest sample is {age:.0f} s old, {max_age_seconds:.0f} s are allowed")
    if math.isnan(value) and signal in QUIET:
        return Reading(None, when, 0, query, "no requests in the window", quiet=True)
    impossible = _impossible(signal, value)
    if impossible:
        return Reading(None, when, 1, query, impossible)
    return Reading(min(value, 1.0) if signal in SHARES else value, when, 1, query)


def _impossible(signal: Signal, value: float) -> str:
    """Why no signal of this kind has such a value; empty when one may."""
    if not math.isfinite(value) or value < 0:
        return f"its value is {value:g}"
    if signal in SHARES and value > 1 + SHARE_SLACK:
        return f"its value is {value:g}, which is no share of 0 to 1"
    return ""


class _UnreadableError(Exception):
    """The answer is no result of an instant query."""


def _samples(body: Any) -> list[tuple[float, float]]:
    if not isinstance(body, dict):
        raise _UnreadableError(f"answer is {type(body).__name__}, not an object")
    if body.get("status") != "success":
        raise _UnreadableError(f"Prometheus refused: {str(body.get('error', body))[:200]}")
    try:
        data = body["data"]
        pairs = [data["result"]] if data["resultType"] == "scalar" else [entry["value"] for entry in data["result"]]
        return [(float(when), float(value)) for when, value in pairs]
    except (KeyError, TypeError, ValueError) as problem:
        raise _UnreadableError(f"answer is not an instant vector: {problem!r}") from problem
