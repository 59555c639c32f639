# SPDX-License-Identifier: Apache-2.0
"""TP, DP and Shift of one model shape on the GPUs of one host, one after the other, as JSON lines.

    python -m bench.gpu.shift --ranks 4 --shape llama-70b-fp8 --inputs 4096 2048 --peak 192 --layouts TP Shift

Weights are dummy; vLLM and this repository's ``core`` and ``sidecar`` must be importable. The reference of a line is
the first layout of the same run.
"""

import argparse
import json
import os
import subprocess
import sys
from typing import Any

from bench.gpu import shapes

Result = dict[str, Any]


def engine_command(options: argparse.Namespace, layout: str, ranks: int, peak: int) -> list[str]:
    """Command line of one engine."""
    words = [sys.executable, "-m", "bench.gpu.engine", "--shape", options.shape, "--layout", layout]
    words += ["--ranks", str(ranks), "--inputs", *map(str, options.inputs), "--peak", str(peak)]
    return [*words, "--models", options.models, "--shift", options.shift]


def start(command: list[str], device: int | None) -> subprocess.Popen[str]:
    """Start an engine, on one device where given."""
    environment = dict(os.environ)
    if device is not None:
        environment["CUDA_VISIBLE_DEVICES"] = str(device)
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def result(process: subprocess.Popen[str]) -> Result:
    """The RESULT line of an engine.

    Raises:
        SystemExit: it ended without one.
    """
    output, _ = process.communicate()
    found = [line.removeprefix("RESULT ") for line in output.splitlines() if line.startswith("RESULT ")]
    if not found:
        raise SystemExit(f"{' '.join(map(str, process.args))}: no result, exit status {process.returncode}")  # type: ignore[arg-type]
    parsed: Result = json.loads(found[-1])
    return parsed


def run(options: argparse.Namespace, layout: str) -> Result:
    """Measure one layout on all ranks. DP is one engine a GPU, all at once, each with its share of the requests."""
    if layout != "DP":
        return result(start(engine_command(options, layout, options.ranks, options.peak), None))
    command = engine_command(options, "TP", 1, options.peak // options.ranks)
    parts = [result(process) for process in [start(command, device) for device in range(options.ranks)]]
    whole = parts[0] | {"layout": "DP", "kv_tokens": sum(part["kv_tokens"] for part in parts)}
    if options.peak:
        whole["tokens_per_second"] = round(sum(part["tokens_per_second"] for part in parts), 1)
    return whole


def figures(measured: Result) -> dict[str, tuple[float, str]]:
    """Name -> value and unit of every figure of one layout."""
    found: dict[str, tuple[float, str]] = {"start": (measured["start_seconds"], "s")}
    for length, times in measured["latency"].items():
        found[f"ttft.{length}"] = (times["ttft_ms"], "ms")
        found[f"tpot.{length}"] = (times["tpot_ms"], "ms")
    if "tokens_per_second" in measured:
        found["throughput"] = (measured["tokens_per_second"], "tokens/s")
    return found


def lines(shape: str, results: list[Result]) -> list[dict[str, Any]]:
    """JSON lines of all layouts; the first layout is the reference of the others."""
    reference = figures(results[0])
    return [
        {
            "name": f"{shape}.{measured['layout']}.{name}",
            "value": value,
            "unit": unit,
            "reference": reference[name][0],
            "ratio": round(value / reference[name][0], 4),
        }
        for measured in results
        for name, (value, unit) in figures(measured).items()
    ]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--shape", default="llama-70b-fp8", choices=shapes.SHAPES)
    parser.add_argument("--layouts", nargs="+", default=["TP", "DP", "Shift"], choices=["TP", "DP", "Shift"])
    parser.add_argument("--inputs", type=int, nargs="+", default=[4096])
    parser.add_argument("--peak", type=int, default=192, help="requests at once; 0 for none")
    parser.add_argument("--models", default="/tmp/gearshift-shapes", help="folder for the configurations")
    parser.add_argument("--shift", default="{}", help="JSON of the shift settings")
    options = parser.parse_args()
    results = [run(options, layout) for layout in options.layouts]
    for line in lines(options.shape, results):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
