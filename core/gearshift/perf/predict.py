# SPDX-License-Identifier: Apache-2.0
"""Time to first token and time per output token of a deployment under a constant load, by the shipped calibrations."""

from dataclasses import dataclass

from gearshift.perf.calibration import Calibration, find_calibration
from gearshift.perf.deployment import Deployment, Workload
from gearshift.perf.neighbours import point
from gearshift.perf.terms import scene, tpot_terms, ttft_terms, weigh


@dataclass(frozen=True, slots=True)
class Prediction:
    """Means over requests, in seconds."""

    ttft_seconds: float
    tpot_seconds: float
    running: float  # requests that the KV cache holds together; below the concurrency the others wait
    outside: tuple[str, ...]  # what lies beyond all that was measured; the terms alone carry the answer there


def predict(deployment: Deployment, workload: Workload) -> Prediction:
    """What a client would see.

    Raises:
        UnknownGpuError, UnknownModelError, UnknownCalibrationError: nothing was measured that the answer could rest on.
    """
    return predict_with(find_calibration(deployment.gpu, deployment.backend, deployment.model), deployment, workload)


def predict_with(calibration: Calibration, deployment: Deployment, workload: Workload) -> Prediction:
    """As `predict`, with a calibration that need not be a shipped one."""
    at = scene(deployment, workload, calibration.precision)
    here = point(deployment, workload)
    modelled = weigh(calibration.tpot.factors, tpot_terms(at))
    return Prediction(
        ttft_seconds=weigh(calibration.ttft.factors, ttft_terms(at, modelled)) * calibration.ttft.field.factor(here),
        tpot_seconds=modelled * calibration.tpot.field.factor(here),
        running=at.running,
        outside=calibration.tpot.field.outside(here),
    )
