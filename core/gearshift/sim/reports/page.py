# SPDX-License-Identifier: Apache-2.0
"""One HTML page on a comparison: table, goodput over GPU-hours, and each fleet over time. No script, no other file."""

from collections.abc import Callable, Sequence
from html import escape

from gearshift.sim.fleet.outcome import Frame, Outcome
from gearshift.sim.reports.compare import HEADINGS, cells, rows, sentence
from gearshift.sim.reports.svg import Series, plot

_STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #ddd}"
    "svg{width:100%;font-size:11px}h2{margin-top:2rem}"
)
_LINES: tuple[tuple[str, str, Callable[[Frame], float]], ...] = (
    ("Pods that exist", "pods", lambda frame: float(frame.pods)),
    ("Requests that wait", "requests", lambda frame: float(frame.waiting)),
    ("Requests that run", "requests", lambda frame: float(frame.running)),
    ("KV cache in use", "share", lambda frame: frame.kv_usage),
)
_ARRIVAL_SECONDS = 10.0


def page(title: str, outcomes: Sequence[Outcome]) -> str:
    """The report as HTML."""
    figures = rows(outcomes)
    scatter = [Series(each.policy, [(each.gpu_hours, each.goodput * 100)], dots=True) for each in outcomes]
    plots = [("Goodput over GPU-hours", plot("Goodput over GPU-hours", "GPU-hours", "% of requests", scatter))]
    plots.append(("Load", plot("Load", "seconds", "tokens per second", _load(outcomes))))
    for name, unit, value in _LINES:
        lines = [Series(each.policy, [(frame.at, value(frame)) for frame in each.frames]) for each in outcomes]
        plots.append((name, plot(name, "seconds", unit, lines)))
    head = "".join(f"<th>{escape(name)}</th>" for name in HEADINGS)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells(each)) + "</tr>" for each in figures)
    notes = "".join(f"<p>{escape(sentence(each))}</p>" for each in figures if "bestStatic" in each)
    drawn = "".join(f"<h2>{escape(name)}</h2>{svg}" for name, svg in plots)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}{drawn}{_actions(outcomes)}</body></html>\n"
    )


def _load(outcomes: Sequence[Outcome]) -> list[Series]:
    """Prompt and output tokens that arrive, of the trace that all runs share."""
    buckets: dict[int, list[int]] = {}
    for request in outcomes[0].requests if outcomes else ():
        bucket = buckets.setdefault(int(request.arrived_at / _ARRIVAL_SECONDS), [0, 0])
        bucket[0] += request.prompt_tokens
        bucket[1] += request.output_tokens
    times = range(max(buckets, default=-1) + 1)
    return [
        Series(name, [(t * _ARRIVAL_SECONDS, buckets.get(t, [0, 0])[index] / _ARRIVAL_SECONDS) for t in times])
        for index, name in enumerate(("prompt", "output"))
    ]


def _actions(outcomes: Sequence[Outcome]) -> str:
    parts = []
    for outcome in outcomes:
        if outcome.acted:
            lines = "".join(
                f"<tr><td>{each.at:.0f} s</td><td>{escape(' '.join(each.direction))}</td>"
                f"<td>{escape(each.action.reason)}</td></tr>"
                for each in outcome.acted
            )
            parts.append(f"<h2>Actions of {escape(outcome.policy)}</h2><table><tbody>{lines}</tbody></table>")
    return "".join(parts)
