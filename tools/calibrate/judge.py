# SPDX-License-Identifier: Apache-2.0
"""Errors of calibrations on rows left out, and the choice of the calibration that errs least there."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from gearshift.perf.calibration import Calibration
from gearshift.perf.predict import predict_with
from gearshift.perf.silicon import Measured
from tools.calibrate.fit import Choice, Prior, choices, fit
from tools.calibrate.rows import Key, folds

FOLDS: Final = 8
LEAST_COMBINATIONS: Final = 3
SMALL: Final = (1.0, Choice(10.0, None))  # of a group too small to leave rows out: the pooled factors, hardly moved


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of both figures."""

    ttft: tuple[float, ...]
    tpot: tuple[float, ...]

    def __add__(self, other: "Errors") -> "Errors":
        return Errors(self.ttft + other.ttft, self.tpot + other.tpot)


NONE: Final = Errors((), ())


def errors(calibration: Calibration, rows: Sequence[Measured]) -> Errors:
    """How far a calibration is off."""
    found = [(row, predict_with(calibration, row.deployment, row.workload)) for row in rows]
    return Errors(
        tuple(abs(each.ttft_seconds / row.ttft_seconds - 1) for row, each in found),
        tuple(abs(each.tpot_seconds / row.tpot_seconds - 1) for row, each in found),
    )


def left_out(key: Key, rows: list[Measured], prior: Prior, seed: int = 0) -> Errors:
    """Errors on rows left out, the choice made anew without them each time."""
    total = NONE
    for kept, left in folds(rows, FOLDS, seed):
        total += errors(best(key, kept, prior, seed + 1), left)
    return total


def best(key: Key, rows: list[Measured], prior: Prior, seed: int = 1) -> Calibration:
    """The calibration of a group by the choice that errs least on combinations left out."""
    splits = folds(rows, FOLDS, seed)
    if len(splits) < LEAST_COMBINATIONS:
        size, choice = SMALL
        return fit(key, rows, prior, size, choice, choice)
    tried = {(size, choice): _tried(key, splits, prior, size, choice) for size, choice in choices()}
    size = min({size for size, _ in tried}, key=lambda each: min(_both(e) for (s, _), e in tried.items() if s == each))
    ttft = min((c for s, c in tried if s == size), key=lambda c: score(tried[size, c].ttft))
    tpot = min((c for s, c in tried if s == size), key=lambda c: score(tried[size, c].tpot))
    return fit(key, rows, prior, size, ttft, tpot)


def score(found: Sequence[float]) -> float:
    """What is to be small: the median error, and some of the mean one, in which no row counts more than 40 %."""
    return median(found) + 0.3 * sum(min(each, 0.4) for each in found) / len(found)


def _tried(
    key: Key, splits: list[tuple[list[Measured], list[Measured]]], prior: Prior, size: float, choice: Choice
) -> Errors:
    total = NONE
    for kept, left in splits:
        total += errors(fit(key, kept, prior, size, choice, choice), left)
    return total


def _both(found: Errors) -> float:
    return score(found.ttft) + score(found.tpot)
