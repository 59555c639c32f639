# SPDX-License-Identifier: Apache-2.0
"""Fits the step times of engines to the measured times per output token, and to the first tokens of little load.

What a step costs is less than what a request sees: only groups get step times whose rows tell them well enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gearshift.perf.silicon import Measured
from gearshift.perf.stepterms import (
    STEP_TERMS,
    decode_counts,
    prompt_attention_seconds,
    prompt_counts,
    prompts_per_step,
    units,
)
from gearshift.perf.terms import Scene, scene
from tools.calibrate.fit import Vector, factors, least, usual_precision

PULL: Final = 0.3
LEAST_ROWS: Final = 12
MOST_ERROR: Final = 0.1  # median relative error of the time per output token
LITTLE_LOAD: Final = 8  # requests up to which a first token waits for little but its own prompt
LEAST_LEFT: Final = 0.5  # share of a time that attention, which is not fitted, leaves to the rest
LEAST: Final = least(STEP_TERMS, {"kv read": 1.0})
"""Factors that no engine is below: the KV cache is read at the bandwidth of the memory at best."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Terms and times of the rows of one group: decode steps, then prompts."""

    terms: Vector
    seconds: Vector
    decodes: int


def steps(rows: Sequence[Measured]) -> Steps:
    """The rows of a group that one engine of its usual precision served, without data-parallel attention."""
    precision = usual_precision(rows)
    used = [row for row in rows if row.deployment.precision == precision and row.deployment.attention_ranks == 1]
    scenes = [(scene(row.deployment, row.workload, precision), row) for row in used]
    decodes = [_decode(at, row.tpot_seconds) for at, row in scenes]
    little = [(at, row) for at, row in scenes if row.workload.concurrency <= LITTLE_LOAD]
    prompts = [_prompt(at, row.ttft_seconds - row.tpot_seconds) for at, row in little]
    terms, seconds = zip(*decodes, *prompts, strict=True)
    return Steps(np.array(terms), np.array(seconds), len(decodes))


def step_factors(of: Steps, prior: Vector) -> tuple[float, ...]:
    """Factors of `STEP_TERMS`; empty where the rows are too few or too far from any."""
    if of.decodes < LEAST_ROWS:
        return ()
    found = factors(of.terms, of.seconds, LEAST, prior, PULL)
    wrong = np.abs(of.terms @ found / of.seconds - 1)[: of.decodes]
    return tuple(found.tolist()) if np.median(wrong) <= MOST_ERROR else ()


def common_steps(groups: Sequence[Steps]) -> Vector:
    """Factors that all groups have in common, each group with the square root of its rows as weight."""
    terms, seconds = np.vstack([each.terms for each in groups]), np.concatenate([each.seconds for each in groups])
    weights = np.concatenate([np.full(len(each.seconds), len(each.seconds) ** -0.5) for each in groups])
    return factors(terms, seconds, LEAST, weights=weights / weights.mean())


def _decode(at: Scene, seconds: float) -> tuple[Vector, float]:
    terms = np.array(decode_counts(at)) * np.array(units(at))
    left = max(seconds - prompts_per_step(at) * prompt_attention_seconds(at), LEAST_LEFT * seconds)
    return terms, left


def _prompt(at: Scene, seconds: float) -> tuple[Vector, float]:
    left = max(seconds - prompt_attention_seconds(at), LEAST_LEFT * seconds)
    return np.array(prompt_counts(at)) * np.array(units(at)), left
