# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.calibrate fit|check|report``: writes the shipped calibrations, judges them, tells their errors."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gearshift.perf.calibration import FORMAT, Calibration, Curve
from gearshift.perf.predict import predict
from gearshift.perf.silicon import Measured, SiliconError
from tools.calibrate.fit import KERNEL, fit, pooled
from tools.calibrate.judge import Verdict, left_out, verdicts, wrong
from tools.calibrate.rows import (
    CALIBRATION,
    Key,
    Part,
    by_key,
    combination,
    concurrency,
    input_length,
    measurement,
    read,
    shipped,
)
from tools.calibrate.steps import common_steps, step_factors, steps

PARTS: Final[dict[str, Part]] = {
    "measurement": measurement,
    "combination": combination,
    "concurrency": concurrency,
    "input length": input_length,
}


def main() -> int:
    """Run one command; 2 when a file can't be read or holds a wrong row."""
    parser = argparse.ArgumentParser(
        prog="calibrate", description="Fits and judges the calibrations of gearshift.perf."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fit", help="fit the shipped measurements and write calibration.json")
    report = commands.add_parser("report", help="errors on rows left out of the fit, as a Markdown table")
    report.add_argument("--without", choices=PARTS, default="combination", help="what is left out together")
    report.add_argument("--seeds", type=int, default=3, help="how many ways to split")
    check = commands.add_parser("check", help="errors of the shipped calibrations on the rows of a file")
    check.add_argument("file", type=Path, help="a table with the columns of silicon_calibration.csv, plain or gzipped")
    arguments = parser.parse_args()
    try:
        if arguments.command == "check":
            rows = read(arguments.file)
            _print(verdicts(wrong(row, predict(row.deployment, row.workload)) for row in rows))
        elif arguments.command == "fit":
            CALIBRATION.write_text(_text(_fitted(by_key(shipped()))), encoding="utf-8")
        else:
            seeds = range(arguments.seeds)
            _print(verdicts(left_out(by_key(shipped()), PARTS[arguments.without], seeds)))
    except (OSError, SiliconError, LookupError, UnicodeDecodeError) as error:
        sys.stderr.write(f"calibrate: {error}\n")
        return 2
    return 0


def _fitted(groups: dict[Key, list[Measured]]) -> list[Calibration]:
    prior = pooled(list(groups.values()))
    known = {key: steps(rows) for key, rows in groups.items()}
    common = common_steps(list(known.values()))
    return [replace(fit(key, rows, prior), step=step_factors(known[key], common)) for key, rows in groups.items()]


def _print(groups: dict[str, Verdict]) -> None:
    sys.stdout.write("| GPU, backend, model | rows | TTFT | TPOT |\n|---|---|---|---|\n")
    for name, found in groups.items():
        sys.stdout.write(f"| {name} | {found.rows} | {found.ttft * 100:.1f} % | {found.tpot * 100:.1f} % |\n")


def _text(calibrations: list[Calibration]) -> str:
    lines = [json.dumps(_table(each), separators=(",", ":")) for each in calibrations]
    kernel = [KERNEL.length, KERNEL.noise, KERNEL.linear]
    return f'{{"format":{FORMAT},"kernel":{kernel},"calibrations":[\n' + ",\n".join(lines) + "\n]}\n"


def _table(of: Calibration) -> dict[str, Any]:
    return {
        "gpu": of.gpu,
        "backend": of.backend,
        "architecture": of.architecture,
        "rows": of.rows,
        "precision": of.precision,
        "points": [
            [[round(x, 4) for x in each.position], each.precision, each.version] for each in of.ttft.field.points
        ],
        "ttft": _curve(of.ttft),
        "tpot": _curve(of.tpot),
        "step": [round(each, 6) for each in of.step],
    }


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "factors": [round(each, 6) for each in curve.factors],
        "weights": [round(each, 4) for each in curve.field.weights],
    }


if __name__ == "__main__":
    sys.exit(main())
