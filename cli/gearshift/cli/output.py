# SPDX-License-Identifier: Apache-2.0
"""How results look: tables and ages for people as kubectl prints them, JSON and YAML for machines."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import yaml

FORMATS: Final = ("json", "yaml")
_GAP: Final = "   "


def document(value: Any, output: str) -> str:
    """``value`` as JSON or YAML, ending in a newline."""
    if output == "json":
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Lines of columns that are as wide as their longest cell."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return [
        indent + _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def pairs(items: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of ``Name:  value`` with the values in one column."""
    found = list(items)
    width = max((len(name) for name, _ in found), default=0) + 3
    return [f"{name + ':':<{width}}{value}".rstrip() for name, value in found]


def span(seconds: float) -> str:
    """A length of time in at most two units, as kubectl writes ages: ``45s``, ``3m10s``, ``25m``, ``5h20m``, ``3d``."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{hours}h" if hours < 48 else f"{days}d"


def age(at: datetime, now: datetime) -> str:
    """How long ago."""
    return span((now - at).total_seconds())


def duration(milliseconds: int | None) -> str:
    """Length of something short: ``250ms``, ``2.1s``, ``95s``."""
    if milliseconds is None:
        return "-"
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    return f"{milliseconds / 1000:.1f}s" if milliseconds < 60_000 else span(milliseconds / 1000)


def shortened(text: str, most: int = 120) -> str:
    """At most that many characters, with an ellipsis where there were more."""
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."


def counted(number: int, noun: str) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
