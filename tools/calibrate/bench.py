# SPDX-License-Identifier: Apache-2.0
"""Measurements of `bench.gpu.shift` from bench/results, one request at a time, as rows beside those of the table."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gearshift.api.vocabulary import Layout
from gearshift.perf.deployment import Deployment, Workload
from gearshift.perf.silicon import Measured, SiliconError

RESULTS: Final = Path(__file__).parents[2] / "bench" / "results"
MODELS: Final = {"llama-70b-fp8": ("meta-llama/Llama-3.1-70B", "fp8")}
"""Model and precision by shape; lines of other shapes stand for no model that is calibrated."""

OUTPUT_TOKENS: Final = 250

_FILE: Final = re.compile(r".*-shift-(\d+)x(h\d+)\.jsonl")
_LINE: Final = re.compile(r"(?P<shape>.+)\.(?P<layout>TP|DP|Shift)\.(?P<figure>ttft|tpot)\.(?P<input>\d+)")

Case = tuple[str, int, str, Layout, int]
"""GPU, accelerators, shape, layout, input tokens."""


def benched(layout: Layout = Layout.TP) -> list[Measured]:
    """Rows of one layout.

    Raises:
        SiliconError: of a case only one figure was measured; names the other.
    """
    figures = _figures()
    cases = sorted({case for case, figure in figures if case[2] in MODELS and case[3] is layout}, key=str)
    try:
        return [_row(case, figures[case, "ttft"], figures[case, "tpot"]) for case in cases]
    except KeyError as error:
        raise SiliconError(f"{RESULTS.name}: {error} is missing") from None


def _figures() -> dict[tuple[Case, str], float]:
    """Seconds by case and figure; the newest file wins."""
    return {at: seconds for path in sorted(RESULTS.glob("*.jsonl")) for at, seconds in _of_file(path)}


def _of_file(path: Path) -> Iterable[tuple[tuple[Case, str], float]]:
    machine = _FILE.fullmatch(path.name)
    if machine is None:
        return
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        found = _LINE.fullmatch(line["name"])
        if found is not None:
            case = (f"{machine[2]}_sxm", int(machine[1]), found["shape"], Layout(found["layout"]), int(found["input"]))
            yield (case, found["figure"]), line["value"] / 1000


def _row(case: Case, ttft_seconds: float, tpot_seconds: float) -> Measured:
    gpu, accelerators, shape, _, inputs = case
    model, precision = MODELS[shape]
    deployment = Deployment(gpu=gpu, backend="vllm", model=model, tensor_parallel=accelerators, precision=precision)
    workload = Workload(concurrency=1, input_tokens=inputs, output_tokens=OUTPUT_TOKENS)
    return Measured(deployment, workload, ttft_seconds, tpot_seconds)
