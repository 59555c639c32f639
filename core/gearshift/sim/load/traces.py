# SPDX-License-Identifier: Apache-2.0
"""Readers of public request traces: Azure (CSV), Mooncake and AIBrix (JSON lines), plain or gzipped.

| format | a request |
|---|---|
| Azure | ``TIMESTAMP,ContextTokens,GeneratedTokens`` |
| Mooncake | ``{"timestamp": ms, "input_length", "output_length", "hash_ids": [...]}`` |
| AIBrix | ``{"timestamp": ms, "requests": [{"Prompt Length", "Output Length", "prompt"}]}`` |
"""

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar
from zlib import crc32

from gearshift.sim.load.arrivals import Arrival

_RowT = TypeVar("_RowT")


class TraceError(ValueError):
    """A file that is no known trace. The message names the file, the line and what is wrong."""


def read_trace(path: Path, max_requests: int, speed: float = 1.0) -> list[Arrival]:
    """The first ``max_requests`` requests of a trace in order of time, from 0 s on, ``speed`` times faster.

    Raises:
        TraceError: the format is unknown or a line is wrong.
        OSError: the file can't be read.
    """
    with _open(path) as lines:
        first = lines.readline()
        read = _azure if first.startswith("TIMESTAMP,") else _json_lines
        lines.seek(0)
        arrivals = list(islice(read(lines, path), max_requests))
    if not arrivals:
        raise TraceError(f"{path}: has no request")
    arrivals.sort(key=lambda arrival: arrival.at_seconds)
    start = arrivals[0].at_seconds
    return [replace(arrival, at_seconds=(arrival.at_seconds - start) / speed) for arrival in arrivals]


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _azure(lines: IO[str], path: Path) -> Iterator[Arrival]:
    for number, row in enumerate(csv.DictReader(lines), start=2):
        yield from _checked(path, number, _azure_request, row)


def _azure_request(row: dict[str, str], number: int) -> list[Arrival]:
    at = datetime.fromisoformat(row["TIMESTAMP"][:26]).replace(tzinfo=UTC).timestamp()
    return [Arrival(at, max(1, int(row["ContextTokens"])), max(1, int(row["GeneratedTokens"])), number)]


def _json_lines(lines: IO[str], path: Path) -> Iterator[Arrival]:
    for number, line in enumerate(lines, start=1):
        yield from _checked(path, number, _json_requests, line)


def _json_requests(line: str, number: int) -> list[Arrival]:
    row = json.loads(line)
    at = float(row["timestamp"]) / 1000
    if "requests" not in row:
        prefix = tuple(int(each) for each in row["hash_ids"])
        return [Arrival(at, max(1, int(row["input_length"])), max(1, int(row["output_length"])), number, prefix)]
    return [
        Arrival(
            at, max(1, int(each["Prompt Length"])), max(1, int(each["Output Length"])), crc32(each["prompt"].encode())
        )
        for each in row["requests"]
    ]


def _checked(path: Path, number: int, parse: Callable[[_RowT, int], list[Arrival]], row: _RowT) -> list[Arrival]:
    try:
        return parse(row, number)
    except KeyError as error:
        raise TraceError(f"{path}:{number}: the field {error} is missing") from None
    except (TypeError, ValueError) as error:
        raise TraceError(f"{path}:{number}: {error}") from None
