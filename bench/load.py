# SPDX-License-Identifier: Apache-2.0
"""Open-loop load on an OpenAI server, as JSON lines: one a interval, then the summary (and one a request on demand).

    python bench/load.py --model m --phases '[{"seconds": 20, "requests_per_second": 5}]'
    python bench/load.py --model m --trace azure2023_conv.csv.gz --speed 10 --max-seconds 60

Exit status 1 when a request failed, 2 when the command line is wrong.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gearshift.sim.load import (
    Arrival,
    LoadSpecError,
    Outcome,
    Target,
    TraceError,
    draw_arrivals,
    parse_phases,
    read_trace,
    run_load,
    summarize,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        arrivals = _arrivals(args)
    except (LoadSpecError, TraceError, OSError) as error:
        parser.error(str(error))
    target = Target(
        url=args.url.rstrip("/"),
        model=args.model,
        timeout_seconds=args.timeout,
        max_in_flight=args.max_in_flight,
    )
    outcomes = asyncio.run(_run(target, arrivals, args.interval, each=args.requests))
    summary = summarize(outcomes)
    _line("summary", summary)
    return 1 if summary["failed"] else 0


async def _run(target: Target, arrivals: Sequence[Arrival], interval_seconds: float, *, each: bool) -> list[Outcome]:
    recent: list[Outcome] = []

    def keep(outcome: Outcome) -> None:
        recent.append(outcome)
        if each:
            row = asdict(outcome)
            row["arrival"].pop("prefix_ids")
            _line("request", row)

    async def report() -> None:
        started = time.monotonic()
        while True:
            await asyncio.sleep(interval_seconds)
            window, recent[:] = list(recent), []
            _line("interval", {"at_seconds": round(time.monotonic() - started, 3), **summarize(window)})

    reporter = asyncio.create_task(report())
    try:
        return await run_load(target, arrivals, keep)
    finally:
        reporter.cancel()


def _arrivals(args: argparse.Namespace) -> list[Arrival]:
    if args.trace is not None:
        arrivals = read_trace(args.trace, args.max_requests, args.speed)
    else:
        arrivals = draw_arrivals(parse_phases(args.phases), args.seed, args.max_requests)
    return [arrival for arrival in arrivals if arrival.at_seconds <= args.max_seconds]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Open-loop load on an OpenAI server.", allow_abbrev=False)
    add = parser.add_argument
    add("--url", default="http://127.0.0.1:8080", help="server (default %(default)s)")
    add("--model", required=True, help="served model name")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--phases", help='JSON list, such as [{"seconds": 20, "requests_per_second": 5}]')
    source.add_argument("--trace", type=Path, help="Azure, Mooncake or AIBrix trace, plain or gzipped")
    add("--speed", type=float, default=1.0, help="times faster than the trace (default %(default)s)")
    add("--seed", type=int, default=0, help="of the phases' arrivals (default %(default)s)")
    add("--max-requests", type=int, default=100_000, help="at most so many (default %(default)s)")
    add("--max-seconds", type=float, default=3600.0, help="no arrival later than that (default %(default)s)")
    add("--max-in-flight", type=int, default=2000, help="arrivals beyond fail as not-sent (default %(default)s)")
    add("--timeout", type=float, default=300.0, help="of one request, in seconds (default %(default)s)")
    add("--interval", type=float, default=5.0, help="seconds between reports (default %(default)s)")
    add("--requests", action="store_true", help="a line for every request, too")
    return parser


def _line(kind: str, values: dict[str, Any]) -> None:
    print(json.dumps({"kind": kind, **values}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
