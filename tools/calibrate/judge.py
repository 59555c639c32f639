# SPDX-License-Identifier: Apache-2.0
"""Errors of calibrations on rows left out of the fit, by GPU, backend and model."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from gearshift.perf.predict import Prediction
from gearshift.perf.predict import predict_with as answer
from gearshift.perf.silicon import Measured
from tools.calibrate.fit import fit, pooled
from tools.calibrate.rows import Key, Part, folds

FOLDS: Final = 8


@dataclass(frozen=True, slots=True)
class Wrong:
    """Relative errors of one prediction, at least 0."""

    name: str  # GPU, backend and model
    ttft: float
    tpot: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Median relative errors of a group."""

    rows: int
    ttft: float
    tpot: float


def wrong(row: Measured, found: Prediction) -> Wrong:
    """How far a prediction is off."""
    at = row.deployment
    name = f"{at.gpu} {at.backend} {at.model}"
    return Wrong(name, abs(found.ttft_seconds / row.ttft_seconds - 1), abs(found.tpot_seconds / row.tpot_seconds - 1))


def verdicts(found: Iterable[Wrong]) -> dict[str, Verdict]:
    """Median errors by GPU, backend and model, sorted."""
    groups: dict[str, list[Wrong]] = defaultdict(list)
    for each in found:
        groups[each.name].append(each)
    return {
        name: Verdict(len(rows), median(row.ttft for row in rows), median(row.tpot for row in rows))
        for name, rows in sorted(groups.items())
    }


def left_out(groups: dict[Key, list[Measured]], part: Part, seeds: Sequence[int] = (0,)) -> list[Wrong]:
    """Errors on rows left out by ``part``; a group's prior is that of the others, so that nothing left out is known."""
    found: list[Wrong] = []
    for key, rows in groups.items():
        prior = pooled([others for other, others in groups.items() if other != key])
        for seed in seeds:
            for kept, left in folds(rows, part, FOLDS, seed):
                calibration = fit(key, kept, prior)
                found += [wrong(row, answer(calibration, row.deployment, row.workload)) for row in left]
    return found
