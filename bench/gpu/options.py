# SPDX-License-Identifier: Apache-2.0
"""Options that the programs of this folder share."""

import argparse
import json
from typing import Any


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Where engines run, what they get, and where results go."""
    add = parser.add_argument
    add("--ranks", type=int, default=4, choices=[2, 4, 8], help="accelerators (default %(default)s)")
    add("--device", default="cuda", choices=["cuda", "cpu"])
    add("--out", default="out/gpu", help="folder of the results, one for each host (default %(default)s)")
    add("--limit-seconds", type=float, help="of the whole command; what is measured until then stays")
    add("--shift", type=json_object, default={}, help="JSON of the shift settings")
    add("--engine", type=json_object, default={}, help="JSON of more engine arguments, for all layouts")


def json_object(text: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        ArgumentTypeError: it is something else.
    """
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return found


def count(text: str) -> int:
    """A number from 1.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)
