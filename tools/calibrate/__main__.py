# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.calibrate fit|check|report``: writes the shipped calibrations, judges them, tells their errors."""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from gearshift.perf.calibration import FORMAT, Calibration, Curve
from gearshift.perf.predict import predict
from gearshift.perf.silicon import Measured, SiliconError
from tools.calibrate.fit import pooled
from tools.calibrate.judge import NONE, Errors, best, left_out
from tools.calibrate.rows import CALIBRATION, MEASUREMENTS, Key, by_key, read


def main() -> int:
    """Run one command; 2 when a file can't be read or holds a wrong row."""
    parser = argparse.ArgumentParser(
        prog="calibrate", description="Fits and judges the calibrations of gearshift.perf."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fit", help="fit the shipped measurements and write calibration.json")
    commands.add_parser("report", help="errors on rows left out of the fit, as a Markdown table; takes minutes")
    check = commands.add_parser("check", help="errors of the shipped calibrations on the rows of a file")
    check.add_argument("file", type=Path, help="a table with the columns of silicon_calibration.csv, plain or gzipped")
    arguments = parser.parse_args()
    try:
        if arguments.command == "check":
            print_errors(_shipped_errors(read(arguments.file)))
        elif arguments.command == "fit":
            CALIBRATION.write_text(_text(_fitted(by_key(read(MEASUREMENTS)))), encoding="utf-8")
        else:
            print_errors(_left_out(by_key(read(MEASUREMENTS))))
    except (OSError, SiliconError, LookupError, UnicodeDecodeError) as error:
        sys.stderr.write(f"calibrate: {error}\n")
        return 2
    return 0


def _fitted(groups: dict[Key, list[Measured]]) -> list[Calibration]:
    prior = pooled(list(groups.values()))
    return [best(key, rows, prior) for key, rows in groups.items()]


def _left_out(groups: dict[Key, list[Measured]]) -> dict[str, Errors]:
    """Errors by group; a group's prior is that of the other groups, so that nothing left out is known."""
    found = {}
    for key, rows in groups.items():
        prior = pooled([others for other, others in groups.items() if other != key])
        found[str(key)] = left_out(key, rows, prior)
    return found


def _shipped_errors(rows: list[Measured]) -> dict[str, Errors]:
    groups: dict[str, Errors] = defaultdict(lambda: NONE)
    for row in rows:
        found = predict(row.deployment, row.workload)
        name = f"{row.deployment.gpu} {row.deployment.backend} {row.deployment.model}"
        wrong = (found.ttft_seconds / row.ttft_seconds - 1, found.tpot_seconds / row.tpot_seconds - 1)
        groups[name] += Errors((abs(wrong[0]),), (abs(wrong[1]),))
    return dict(sorted(groups.items()))


def print_errors(groups: dict[str, Errors]) -> None:
    """A Markdown table: median errors in percent by group."""
    sys.stdout.write("| GPU, backend, model | rows | TTFT, median error | TPOT, median error |\n|---|---|---|---|\n")
    for name, found in groups.items():
        cells = " | ".join(f"{median(each) * 100:.1f} %" if each else "" for each in (found.ttft, found.tpot))
        sys.stdout.write(f"| {name} | {len(found.ttft)} | {cells} |\n")


def _text(calibrations: list[Calibration]) -> str:
    lines = [json.dumps(_table(each), separators=(",", ":")) for each in calibrations]
    return f'{{"format":{FORMAT},"calibrations":[\n' + ",\n".join(lines) + "\n]}\n"


def _table(of: Calibration) -> dict[str, Any]:
    field = of.ttft.field or of.tpot.field
    points = () if field is None else field.points
    return {
        "gpu": of.gpu,
        "backend": of.backend,
        "architecture": of.architecture,
        "rows": of.rows,
        "precision": of.precision,
        "kvValueBytes": of.kv_value_bytes,
        "points": [[[round(x, 4) for x in each.position], each.precision, each.version] for each in points],
        "ttft": _curve(of.ttft),
        "tpot": _curve(of.tpot),
    }


def _curve(curve: Curve) -> dict[str, Any]:
    field = curve.field
    return {
        "factors": [round(each, 6) for each in curve.factors],
        "kernel": None if field is None else [field.kernel.length, field.kernel.noise, field.kernel.linear],
        "weights": [] if field is None else [round(each, 4) for each in field.weights],
    }


if __name__ == "__main__":
    sys.exit(main())
