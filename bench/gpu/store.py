# SPDX-License-Identifier: Apache-2.0
"""Where results lie between commands: one file of JSON records for each shape, layout and number of ranks.

A folder stands for one host in one state: a layout's first start in it is the one with cold compile caches.
"""

import json
from pathlib import Path
from typing import Any

from bench.gpu.job import Job, Layout

Record = dict[str, Any]
LAYOUTS: tuple[Layout, ...] = ("TP", "DP", "Shift")
"""In the order in which they run: the first is the reference of the others."""


class Store:
    """The folder of ``--out``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def records_path(self, shape: str, layout: str, ranks: int) -> Path:
        """File that a child appends to."""
        return self.folder / f"{shape}.x{ranks}.{layout}.records.jsonl"

    def log_path(self, job: Job) -> Path:
        """What the engine printed."""
        return self.folder / f"{job.shape}.x{job.ranks}.{job.layout}.log"

    def records(self, shape: str, layout: str, ranks: int) -> list[Record]:
        """All records of an engine, oldest first."""
        path = self.records_path(shape, layout, ranks)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def results(self, shape: str, ranks: int) -> dict[str, list[Record]]:
        """Records by layout, of the layouts that have any."""
        found = {layout: self.records(shape, layout, ranks) for layout in LAYOUTS}
        return {layout: records for layout, records in found.items() if records}

    def peak_of_reference(self, shape: str, ranks: int) -> float | None:
        """Tokens per second that TP has reached in this folder."""
        found = last(self.records(shape, LAYOUTS[0], ranks), "peak")
        return None if found is None else max(rate for _, rate in found["rounds"])


def last(records: list[Record], part: str) -> Record | None:
    """The newest record of a part."""
    return next((each for each in reversed(records) if each["part"] == part), None)
