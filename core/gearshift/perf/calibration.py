# SPDX-License-Identifier: Apache-2.0
"""Calibrations that come with the product: factors of the terms for each (GPU, backend, architecture) measured."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from gearshift.perf.hardware import find_gpu
from gearshift.perf.models import find_model
from gearshift.perf.neighbours import Field, Kernel, Point

FORMAT: Final = 3


class UnknownCalibrationError(LookupError):
    """Nothing was measured for the combination. The message lists what was."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Factors of the terms of one figure, and the correction by neighbours."""

    factors: tuple[float, ...]
    field: Field


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was learnt of one (GPU, backend, architecture)."""

    gpu: str
    backend: str
    architecture: str
    rows: int
    precision: str  # used when a question names none
    ttft: Curve
    tpot: Curve
    step: tuple[float, ...] = ()  # factors of `STEP_TERMS`; empty where the measurements don't tell them


def find_calibration(gpu: str, backend: str, model: str) -> Calibration:
    """The calibration of a combination.

    Raises:
        UnknownGpuError, UnknownModelError: nothing is known of the accelerator or the model.
        UnknownCalibrationError: the combination was not measured.
    """
    key = (find_gpu(gpu).name, backend, find_model(model).name)
    try:
        return calibrations()[key]
    except KeyError:
        known = "; ".join(" ".join(each) for each in sorted(calibrations()))
        message = f"no measurements of model {model!r} with backend {backend!r} on gpu {gpu!r}; measured: {known}"
        raise UnknownCalibrationError(message) from None


@cache
def calibrations() -> Mapping[tuple[str, str, str], Calibration]:
    """All calibrations by (GPU, backend, architecture)."""
    text = files("gearshift.perf").joinpath("data", "calibration.json").read_text(encoding="utf-8")
    tables = json.loads(text)
    assert tables["format"] == FORMAT, "calibration.json and this code come from one build"
    kernel = Kernel(*tables["kernel"])
    found = (parse(each, kernel) for each in tables["calibrations"])
    return MappingProxyType({(each.gpu, each.backend, each.architecture): each for each in found})


def parse(table: Mapping[str, Any], kernel: Kernel) -> Calibration:
    """A calibration from its JSON form."""
    points = tuple(Point(tuple(at), precision, version) for at, precision, version in table["points"])
    return Calibration(
        gpu=table["gpu"],
        backend=table["backend"],
        architecture=table["architecture"],
        rows=table["rows"],
        precision=table["precision"],
        ttft=_curve(table["ttft"], kernel, points),
        tpot=_curve(table["tpot"], kernel, points),
        step=tuple(table["step"]),
    )


def _curve(table: Mapping[str, Any], kernel: Kernel, points: tuple[Point, ...]) -> Curve:
    return Curve(tuple(table["factors"]), Field(kernel, points, tuple(table["weights"])))
