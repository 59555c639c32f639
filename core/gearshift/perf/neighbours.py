# SPDX-License-Identifier: Apache-2.0
"""What measurements near a question say beyond the terms: kriging of the logarithm of measured over modelled time.

Far from every measurement the correction vanishes, so that the terms alone speak there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log2, sqrt
from typing import Final

from gearshift.perf.deployment import Deployment, Workload

ROUNDED: Final = 1e-3
"""More than positions of measurements are rounded by where they are stored."""

MISMATCH: Final = 0.7
"""Decay of the weight of a measurement for each of precision and version that is another one."""

CENTRE: Final = (1.5, 0.5, 2.0, 0.5, 11.0, 5.0, 4.0)
"""Where the linear part of a kernel is zero: the middle of what was measured."""

AXES: Final = (
    "tensor parallel", "attention ranks", "accelerators", "expert parallel", "input tokens", "output tokens",
    "concurrency",
)  # fmt: skip
"""What the numbers of a position stand for."""

Position = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """How two questions relate: exponential in their distance, and linear in their position by ``linear``."""

    length: float
    noise: float
    linear: float


@dataclass(frozen=True, slots=True)
class Point:
    """Where something was measured, or is asked. Empty precision or version: any."""

    position: Position
    precision: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """Correction by neighbours: a kernel, points and their weights."""

    kernel: Kernel
    points: tuple[Point, ...]
    weights: tuple[float, ...]

    def factor(self, point: Point) -> float:
        """By what the sum of the terms is to be multiplied at ``point``."""
        return exp(sum(w * covariance(self.kernel, point, other) for w, other in self._pairs()))

    def outside(self, point: Point) -> tuple[str, ...]:
        """Axes on which ``point`` lies beyond all measurements."""
        measured = zip(*(other.position for other in self.points), strict=True)
        at = zip(AXES, point.position, measured, strict=True)
        return tuple(axis for axis, here, there in at if not min(there) - ROUNDED <= here <= max(there) + ROUNDED)

    def _pairs(self) -> Iterable[tuple[float, Point]]:
        return zip(self.weights, self.points, strict=True)


def point(deployment: Deployment, workload: Workload) -> Point:
    """Position of a question: logarithms of sizes, scaled by how much they tell."""
    position = (
        log2(deployment.tensor_parallel),
        log2(deployment.attention_ranks),
        log2(deployment.gpus),
        0.5 * log2(deployment.expert_parallel or 1),
        log2(workload.input_tokens),
        0.6 * log2(workload.output_tokens),
        0.8 * log2(workload.concurrency),
    )
    return Point(position, deployment.precision or "", deployment.version or "")


def covariance(kernel: Kernel, one: Point, other: Point) -> float:
    """How much a measurement at ``other`` says about ``one``."""
    distance = sqrt(sum((a - b) ** 2 for a, b in zip(one.position, other.position, strict=True)))
    near = exp(-distance / kernel.length - MISMATCH * (_differ(one, other)))
    dot = sum((a - c) * (b - c) for a, b, c in zip(one.position, other.position, CENTRE, strict=True))
    return near + kernel.linear * dot


def _differ(one: Point, other: Point) -> int:
    pairs = ((one.precision, other.precision), (one.version, other.version))
    return sum(1 for a, b in pairs if a and b and a != b)
