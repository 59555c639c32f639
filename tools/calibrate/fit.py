# SPDX-License-Identifier: Apache-2.0
"""Fits factors of terms: least relative error, never negative, pulled towards what all groups have in common.

Small groups lean on the pooled factors, large ones speak for themselves. Pull and kernel are the same for all groups:
errors on rows left out hardly differ from one choice to the next, so choosing by group would fit noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gearshift.perf.calibration import Calibration, Curve
from gearshift.perf.deployment import Deployment, Workload
from gearshift.perf.neighbours import Field, Kernel, Point, covariance, point
from gearshift.perf.silicon import Measured
from gearshift.perf.terms import TPOT_TERMS, TTFT_TERMS, scene, tpot_terms, ttft_terms
from tools.calibrate.rows import Key

Vector = NDArray[np.float64]


def least(terms: Sequence[str], bounds: Mapping[str, float]) -> Vector:
    """Lower bounds of the factors of ``terms``: those named, and 0."""
    return np.array([bounds.get(term, 0.0) for term in terms])


PULL: Final = 0.03
KERNEL: Final = Kernel(length=6.0, noise=0.05, linear=0.1)
OUTLIER: Final = 0.8  # log of measured over modelled from which a row says nothing about its neighbours
DOUBTFUL: Final = 0.25  # log of measured over modelled from which a row says less about them
TPOT_LEAST: Final = least(TPOT_TERMS, {"overhead": 1.0, "dense weights": 0.8})
TTFT_LEAST: Final = least(TTFT_TERMS, {"compute": 1.0})
"""Factors that no engine is below, so that little load and long prompts keep to the limits of the data sheets."""
ROBUST: Final = 0.03  # relative error from which a row weighs less


@dataclass(frozen=True, slots=True)
class Prior:
    """Factors that all groups have in common."""

    ttft: tuple[float, ...]
    tpot: tuple[float, ...]


def factors(
    terms: Vector,
    seconds: Vector,
    bounds: Vector,
    prior: Vector | None = None,
    pull: float = PULL,
    weights: Vector | None = None,
) -> Vector:
    """Factors of the columns of ``terms``, from ``bounds`` on, that meet ``seconds`` with the least relative error.

    They are pulled towards ``prior`` where there is one.
    """
    if prior is None:
        prior, pull = np.zeros(terms.shape[1]), 0.0
    scaled = terms / seconds[:, None]
    size = np.sqrt((scaled**2).mean(axis=0)) + 1e-12
    towards = pull * size**2
    found, trust = prior + 1e-3, np.ones(len(seconds))
    for _ in range(6):
        matrix = (scaled * trust[:, None]).T @ scaled + np.diag(towards + 1e-4 * size**2)
        found = _bounded(matrix, (scaled * trust[:, None]).sum(axis=0) + towards * prior, found, bounds)
        trust = ROBUST / np.maximum(np.abs(scaled @ found - 1), ROBUST)
        if weights is not None:
            trust = trust * weights
    return found


def _bounded(matrix: Vector, target: Vector, start: Vector, bounds: Vector) -> Vector:
    """Minimum of the quadratic form over factors of at least ``bounds``, one coordinate after the other."""
    found = np.maximum(start, bounds)
    for _ in range(60):
        before = found.copy()
        for column in range(len(found)):
            slope = target[column] - matrix[column] @ found
            found[column] = max(bounds[column], found[column] + slope / matrix[column, column])
        if np.abs(found - before).max() < 1e-6:
            break
    return found


def pooled(groups: Sequence[Sequence[Measured]]) -> Prior:
    """Factors over all groups, each group with the square root of its rows as weight."""
    rows = [row for group in groups for row in group]
    weights = np.array([1 / np.sqrt(len(group)) for group in groups for _ in group])
    weights /= weights.mean()
    tpots, ttfts = _tpots(rows), _ttfts(rows)
    own = np.array([_tpot_terms(row.deployment, row.workload) for row in rows])
    tpot = factors(own, tpots, TPOT_LEAST, weights=weights)
    first = np.array([_ttft_row(row, row.tpot_seconds) for row in rows])
    ttft = factors(first, ttfts, TTFT_LEAST, weights=weights)
    return Prior(tuple(ttft.tolist()), tuple(tpot.tolist()))


def fit(key: Key, rows: Sequence[Measured], prior: Prior) -> Calibration:
    """The calibration of one group."""
    tpots, ttfts = _tpots(rows), _ttfts(rows)
    points = tuple(point(row.deployment, row.workload) for row in rows)
    own = np.array([_tpot_terms(row.deployment, row.workload) for row in rows])
    tpot_curve = _curve(own, tpots, TPOT_LEAST, prior.tpot, points)
    modelled = own @ np.array(tpot_curve.factors)
    first = np.array([_ttft_row(row, each) for row, each in zip(rows, modelled.tolist(), strict=True)])
    ttft_curve = _curve(first, ttfts, TTFT_LEAST, prior.ttft, points)
    return Calibration(key.gpu, key.backend, key.architecture, len(rows), usual_precision(rows), ttft_curve, tpot_curve)


def usual_precision(rows: Sequence[Measured]) -> str:
    """The precision that most rows have."""
    precisions = [row.deployment.precision or "" for row in rows]
    return max(sorted(set(precisions)), key=precisions.count)


def _curve(
    terms: Vector, seconds: Vector, bounds: Vector, prior: tuple[float, ...], points: tuple[Point, ...]
) -> Curve:
    common = np.array(prior)
    found = factors(terms, seconds, bounds, common * np.median(seconds / (terms @ common)))
    return Curve(tuple(found.tolist()), _field(points, np.log(seconds / (terms @ found))))


def _field(points: tuple[Point, ...], wrong: Vector) -> Field:
    kept = [index for index in range(len(points)) if abs(wrong[index] - float(np.median(wrong))) < OUTLIER]
    matrix = np.array([[_covariance(points[a], points[b]) for b in kept] for a in kept])
    noise = KERNEL.noise * np.maximum(1, (np.abs(wrong[kept]) / DOUBTFUL) ** 2)
    weights = np.zeros(len(points))
    weights[kept] = np.linalg.solve(matrix + np.diag(noise), wrong[kept])
    return Field(KERNEL, points, tuple(weights.tolist()))


@lru_cache(maxsize=200_000)
def _covariance(one: Point, other: Point) -> float:
    return covariance(KERNEL, one, other)


@lru_cache(maxsize=10_000)
def _tpot_terms(deployment: Deployment, workload: Workload) -> tuple[float, ...]:
    return tpot_terms(scene(deployment, workload, "fp8"))


def _ttft_row(row: Measured, tpot_seconds: float) -> tuple[float, ...]:
    return ttft_terms(scene(row.deployment, row.workload, "fp8"), tpot_seconds)


def _tpots(rows: Sequence[Measured]) -> Vector:
    return np.array([row.tpot_seconds for row in rows])


def _ttfts(rows: Sequence[Measured]) -> Vector:
    return np.array([row.ttft_seconds for row in rows])
