# SPDX-License-Identifier: Apache-2.0
"""Measurements from files, grouped as they are fitted and as they are judged."""

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Final
from zlib import crc32

from gearshift.perf.models import find_model
from gearshift.perf.silicon import Measured, SiliconError, measured
from tools.calibrate.bench import benched

DATA: Final = Path(__file__).parents[2] / "core" / "gearshift" / "perf" / "data"
MEASUREMENTS: Final = DATA / "silicon_calibration.csv.gz"
CALIBRATION: Final = DATA / "calibration.json"


Part = Callable[[Measured], Hashable]
"""What rows share that are left out together."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a calibration is for."""

    gpu: str
    backend: str
    architecture: str

    def __str__(self) -> str:
        return f"{self.gpu} {self.backend} {self.architecture}"


def read(path: Path) -> list[Measured]:
    """All rows of a table, plain or gzipped.

    Raises:
        SiliconError: a row is no measurement; names the file and the line.
        OSError: the file can't be read.
    """
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return [_measured(path, number, row) for number, row in enumerate(csv.DictReader(StringIO(text)), start=2)]


def shipped() -> list[Measured]:
    """All that the shipped calibrations rest on: the public table, and what the benchmarks of this repository saw."""
    return read(MEASUREMENTS) + benched()


def _measured(path: Path, number: int, row: dict[str, str]) -> Measured:
    try:
        return measured(row)
    except SiliconError as error:
        raise SiliconError(f"{path}:{number}: {error}") from None


def by_key(rows: Iterable[Measured]) -> dict[Key, list[Measured]]:
    """Rows by calibration, sorted."""
    groups: dict[Key, list[Measured]] = defaultdict(list)
    for row in rows:
        at = row.deployment
        groups[Key(at.gpu, at.backend, find_model(at.model).name)].append(row)
    return dict(sorted(groups.items(), key=lambda item: str(item[0])))


def measurement(row: Measured) -> Measured:
    """What only rows share that repeat each other to the digit."""
    return row


def combination(row: Measured) -> tuple[object, ...]:
    """What rows share that measured the same thing, in whatever version."""
    return (replace(row.deployment, version=None, model=""), row.workload)


def input_length(row: Measured) -> int:
    """What rows share whose prompts are of one length."""
    return row.workload.input_tokens


def concurrency(row: Measured) -> int:
    """What rows share that were measured under as many requests."""
    return row.workload.concurrency


def folds(rows: list[Measured], part: Part, count: int, seed: int) -> list[tuple[list[Measured], list[Measured]]]:
    """Splits into rows to fit and rows left out by whole parts, at most ``count``, always with rows to fit."""
    ordered = sorted({part(row) for row in rows}, key=lambda each: crc32(repr((seed, each)).encode()))
    fold = {each: index % min(count, len(ordered)) for index, each in enumerate(ordered)}
    splits = []
    for index in range(min(count, len(ordered))):
        fit = [row for row in rows if fold[part(row)] != index]
        left = [row for row in rows if fold[part(row)] == index]
        if fit:
            splits.append((fit, left))
    return splits
