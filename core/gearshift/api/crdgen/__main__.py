# SPDX-License-Identifier: Apache-2.0
"""Write the CRD files, or fail when they differ from what would be written."""

import argparse
import difflib
import json
import sys
from pathlib import Path
from typing import Any

from gearshift.api import names
from gearshift.api.crdgen.crd import crd

HEADER = "# Generated from core/gearshift/api by `make generate`. Do not edit.\n"


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def to_yaml(value: Any, indent: int = 0) -> str:
    """Block YAML of JSON-like data, keys in their order, every scalar in JSON's form.

    Only pydantic may be imported here, so the few lines stand in for a YAML library.
    """
    pad = "  " * indent
    if isinstance(value, dict) and value:
        return "".join(f"{pad}{key}:{_nested(item, indent)}" for key, item in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{pad}-{_item(item, indent)}" for item in value)
    return f"{pad}{_scalar(value)}\n"


def _nested(value: Any, indent: int) -> str:
    if isinstance(value, (dict, list)) and value:
        return "\n" + to_yaml(value, indent + 1)
    return f" {_scalar(value)}\n"


def _item(value: Any, indent: int) -> str:
    if isinstance(value, (dict, list)) and value:
        return " " + to_yaml(value, indent + 1).lstrip(" ")
    return f" {_scalar(value)}\n"


def files() -> dict[str, str]:
    """File name -> content of all generated manifests."""
    return {f"{names.GROUP}_{names.PLURAL}.yaml": HEADER + to_yaml(crd())}


def _differences(directory: Path) -> list[str]:
    lines: list[str] = []
    for name, content in files().items():
        path = directory / name
        present = path.read_text() if path.exists() else ""
        lines += difflib.unified_diff(present.splitlines(), content.splitlines(), str(path), "generated", lineterm="")
    return lines


def main(arguments: list[str]) -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m gearshift.api.crdgen", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on a difference")
    options = parser.parse_args(arguments)
    if options.check:
        differences = _differences(options.directory)
        print("\n".join(differences), end="\n" if differences else "")
        return 1 if differences else 0
    options.directory.mkdir(parents=True, exist_ok=True)
    for name, content in files().items():
        (options.directory / name).write_text(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
