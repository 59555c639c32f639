# SPDX-License-Identifier: Apache-2.0
"""A timeline of a load: one line a second out of what was sampled. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gearshift.sim.load import Outcome
from gearshift.sim.load.summary import quantile

HEADER = "    s   req/s  failed  TTFT p50 ms  layouts          roles        transition"


@dataclass(frozen=True)
class Sample:
    """Status of the service at one moment of the load."""

    at_seconds: float
    layouts: tuple[str, ...]
    roles: tuple[str, ...]
    transition: str


def counts(values: Sequence[str]) -> str:
    """``2 TP 2 DP``: how often each value occurs, in the order of the alphabet."""
    return " ".join(f"{values.count(value)} {value}" for value in sorted(set(values)))


def lines(outcomes: Iterable[Outcome], samples: Sequence[Sample], step_seconds: int = 2) -> list[str]:
    """The table below `HEADER`."""
    sent: dict[int, list[Outcome]] = {}
    for outcome in outcomes:
        sent.setdefault(int(outcome.sent_at) // step_seconds, []).append(outcome)
    last = max([*sent, *(int(sample.at_seconds) // step_seconds for sample in samples)], default=-1)
    return [_line(step, step_seconds, sent.get(step, []), samples) for step in range(last + 1)]


def _line(step: int, step_seconds: int, outcomes: Sequence[Outcome], samples: Sequence[Sample]) -> str:
    inside = [sample for sample in samples if int(sample.at_seconds) // step_seconds == step]
    ttft = quantile([o.ttft_seconds for o in outcomes if o.ttft_seconds is not None], 0.5)
    failed = sum(bool(outcome.failure) for outcome in outcomes)
    layouts = counts(inside[-1].layouts) if inside else ""
    roles = counts([role[0] for role in inside[-1].roles]) if inside else ""
    moves = ", ".join(dict.fromkeys(sample.transition for sample in inside if sample.transition))
    shown = "" if ttft is None else f"{1e3 * ttft:.0f}"
    rate = len(outcomes) / step_seconds
    return f"{step * step_seconds:5d} {rate:7.1f} {failed:7d} {shown:>12}  {layouts:<15}  {roles:<11}  {moves}".rstrip()
