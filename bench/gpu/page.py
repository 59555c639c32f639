# SPDX-License-Identifier: Apache-2.0
"""The plots of a run as one HTML page without scripts: latency by input, throughput by load, and the bursty trace."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from bench.gpu.figures import WINDOW_SECONDS, Results, windows
from bench.gpu.store import Record, last
from gearshift.sim.reports.svg import Points, Series, plot

_STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.1rem .6rem;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child{text-align:left}svg{width:100%;font-size:11px}"
)


def page(title: str, results: Results, lines: Sequence[dict[str, Any]]) -> str:
    """The report as HTML."""
    drawn = "".join(f"<h2>{escape(name)}</h2>{svg}" for name, svg in plots(results))
    cells = ("name", "value", "unit", "reference", "ratio")
    head = "".join(f"<th>{name}</th>" for name in cells)
    body = "".join("<tr>" + "".join(f"<td>{_cell(line[name])}</td>" for name in cells) + "</tr>" for line in lines)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{drawn}"
        f"<h2>Figures</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></body></html>\n"
    )


def plots(results: Results) -> list[tuple[str, str]]:
    """Title and SVG of every plot that there are records for."""
    asked = (
        ("Time to first token, one request at a time", "latency", "input tokens", "ms", _times("ttft_ms"), False),
        ("Time per output token, one request at a time", "latency", "input tokens", "ms", _times("tpot_ms"), False),
        ("Throughput, in and out", "peak", "requests at once", "tokens/s", _rounds, False),
        (f"Bursty trace: throughput, {WINDOW_SECONDS:g} s", "burst", "seconds", "tokens/s", windows, False),
        ("Bursty trace: time to first token", "burst", "seconds", "ms", _requests, True),
    )
    found = []
    for title, part, x_label, y_label, read, dots in asked:
        newest = {layout: last(list(records), part) for layout, records in results.items()}
        series = [Series(layout, read(record), dots=dots) for layout, record in newest.items() if record]
        if series:
            found.append((title, plot(title, x_label, y_label, series)))
    return found


def _times(name: str) -> Callable[[Record], Points]:
    return lambda record: [(float(length), times[name]) for length, times in record["times"].items()]


def _rounds(record: Record) -> Points:
    return [(float(requests), rate) for requests, rate in record["rounds"]]


def _requests(record: Record) -> Points:
    return [(at, ttft) for at, ttft, _ in record["requests"]]


def _cell(value: float | str | None) -> str:
    return "" if value is None else escape(str(value))
