# SPDX-License-Identifier: Apache-2.0
"""Policies side by side: figures of each, and how they stand against the static fleets among them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gearshift.sim.fleet.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Standing:
    """A run against the best static fleet (most goodput, then fewest GPU-hours) and against one of equal GPU-hours."""

    best: str
    goodput_over_best: float  # shares: 0.01 is one percentage point
    gpu_hours_saved: float  # share of the best one's
    goodput_over_equal: float | None  # None: its GPU-hours are outside those of the static fleets


def standing(outcome: Outcome, outcomes: Sequence[Outcome]) -> Standing | None:
    """Where a run stands; None without static fleets."""
    statics = sorted((each for each in outcomes if is_static(each)), key=lambda each: each.gpu_hours)
    if not statics:
        return None
    best = max(statics, key=lambda each: (each.good, -each.gpu_hours))
    equal = equal_goodput(statics, outcome.gpu_hours)
    return Standing(
        best=best.policy,
        goodput_over_best=outcome.goodput - best.goodput,
        gpu_hours_saved=1 - outcome.gpu_hours / best.gpu_hours,
        goodput_over_equal=None if equal is None else outcome.goodput - equal,
    )


def is_static(outcome: Outcome) -> bool:
    """Whether nobody touched the fleet."""
    return outcome.policy.startswith("static")


def equal_goodput(statics: Sequence[Outcome], gpu_hours: float) -> float | None:
    """Goodput of the best mix of static fleets of that many GPU-hours: on the line between the nearest two."""
    hours = [each.gpu_hours for each in statics]
    shares = [max(each.goodput for each in statics[: index + 1]) for index in range(len(statics))]
    if not hours[0] <= gpu_hours <= hours[-1]:
        return None
    index = min(bisect_right(hours, gpu_hours), len(hours) - 1)
    for (low, less), (high, more) in list(pairwise(zip(hours, shares, strict=True)))[index - 1 : index]:
        return less + (more - less) * (gpu_hours - low) / (high - low) if high > low else more
    return shares[-1]


def rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """JSON-ready figures of each run, with its standing."""
    found = []
    for outcome in outcomes:
        figures = outcome.figures()
        place = standing(outcome, outcomes)
        if place is not None and not is_static(outcome):
            over = place.goodput_over_equal
            figures["bestStatic"] = place.best
            figures["goodputOverBestStatic"] = round(place.goodput_over_best, 5)
            figures["gpuHoursSavedOverBestStatic"] = round(place.gpu_hours_saved, 4)
            figures["goodputOverEqualStatic"] = None if over is None else round(over, 5)
        found.append(figures)
    return found


HEADINGS = (
    "policy", "goodput", "good/s", "GPU-hours", "TTFT p50", "p90", "p99", "ITL p50", "p90", "p99", "actions",
    "reversals", "failed",
)  # fmt: skip


def cells(figures: dict[str, Any]) -> list[str]:
    """One line of the table, as `HEADINGS`; times in milliseconds."""
    times = [figures[key][name] for key in ("ttftSeconds", "itlSeconds") for name in ("p50", "p90", "p99")]
    return [
        figures["policy"],
        f"{figures['goodput'] * 100:.2f} %",
        f"{figures['goodRequestsPerSecond']:.3f}",
        f"{figures['gpuHours']:.3f}",
        *("-" if each is None else f"{each * 1000:.1f} ms" for each in times),
        str(figures["actions"]),
        str(figures["reversals"]),
        str(sum(figures["failed"].values())),
    ]


def table(outcomes: Sequence[Outcome]) -> str:
    """All runs as text, and a sentence on each that is not static."""
    figures = rows(outcomes)
    lines = [list(HEADINGS), *(cells(each) for each in figures)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return "\n".join([*text, *(sentence(each) for each in figures if "bestStatic" in each)]) + "\n"


def sentence(figures: dict[str, Any]) -> str:
    """How a run stands against static fleets."""
    over, saved = figures["goodputOverBestStatic"] * 100, figures["gpuHoursSavedOverBestStatic"] * 100
    equal = figures["goodputOverEqualStatic"]
    best = f"{over:+.2f} points of goodput and {-saved:+.1f} % GPU-hours against {figures['bestStatic']}"
    mixed = "" if equal is None else f"; {equal * 100:+.2f} points of goodput against static fleets of equal GPU-hours"
    return f"{figures['policy']}: {best}{mixed}"
