# SPDX-License-Identifier: Apache-2.0
"""Threshold ``auto``: the number of tokens above which the SP tree is the faster one, from measured step times."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """Step time of both trees at one size."""

    tokens: int
    tensor_seconds: float
    sequence_seconds: float


def sizes(floor: int, ceiling: int) -> list[int]:
    """Token counts to measure: doubling from the floor to the ceiling, with a step between."""
    if ceiling <= floor:
        return [ceiling]
    found: list[int] = []
    size = max(16, floor)
    while size < ceiling:
        found += [size, size + size // 2]
        size *= 2
    return [value for value in found if value < ceiling] + [ceiling]


def crossing(samples: Sequence[Sample], floor: int, ceiling: int) -> int:
    """Threshold such that every measured size above it is faster in the SP tree.

    Returns ``floor`` when the SP tree always wins and ``ceiling`` when it never does within what was measured. Between
    two sizes the crossing of the linear interpolations is taken.
    """
    ordered = sorted(samples, key=lambda sample: sample.tokens)
    last_loss = max((i for i, sample in enumerate(ordered) if gain(sample) < 0), default=None)
    if last_loss is None:
        return floor
    if last_loss == len(ordered) - 1:
        return ceiling
    low, high = ordered[last_loss], ordered[last_loss + 1]
    share = -gain(low) / (gain(high) - gain(low))
    return min(ceiling, max(floor, round(low.tokens + share * (high.tokens - low.tokens))))


def gain(sample: Sample) -> float:
    """Seconds that the SP tree saves in a step."""
    return sample.tensor_seconds - sample.sequence_seconds
