# SPDX-License-Identifier: Apache-2.0
"""Demand as it was at a moment, remembered so that growth and trend can be told."""

from dataclasses import dataclass

from gearshift.policy import tuning


@dataclass(frozen=True, slots=True)
class Sample:
    """Work in pods, and requests that waited."""

    at: float
    work: float
    waiting: int


def sampled(samples: tuple[Sample, ...], now: Sample | None, at: float, span_seconds: float) -> tuple[Sample, ...]:
    """Samples after one more, oldest first.

    | a sample | stays |
    |---|---|
    | older than the span | no |
    | the new one, sooner than `tuning.SAMPLE_SECONDS` after the one before | no |
    | else | yes |
    """
    past = tuple(each for each in samples if at - span_seconds <= each.at < at)
    if now is None or (past and now.at - past[-1].at < tuning.SAMPLE_SECONDS):
        return past
    return (*past, now)
