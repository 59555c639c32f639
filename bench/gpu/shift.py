# SPDX-License-Identifier: Apache-2.0
"""TP, DP and Shift of one model shape on the accelerators of one host, one after the other, as JSON lines and plots.

    python -m bench.gpu.shift --ranks 4 --shape llama-70b-fp8
    python -m bench.gpu.shift --ranks 4 --shape llama-70b-fp8 --layouts Shift --parts start

Weights are dummy; vLLM and this repository's ``core`` and ``sidecar`` must be importable. Results gather in ``--out``,
so that a run can be split into commands; what has been measured is printed at the end of each, with TP as reference.
"""

import argparse
import json
import math
import sys
import time
from pathlib import Path

from bench.gpu import shapes
from bench.gpu.child import Child, ChildFailed
from bench.gpu.devices import variables
from bench.gpu.figures import incomparable, lines
from bench.gpu.job import Burst, Job, Latency, Layout, Peak
from bench.gpu.options import add_engine_options, count
from bench.gpu.page import page
from bench.gpu.store import LAYOUTS, Store, last

PARTS = ("start", "latency", "peak", "burst")
FIRST_REQUESTS_PER_RANK = 24
LEAST_CONTEXT_TOKENS = 1024
CONTEXT_STEP_TOKENS = 256
MOST_TIMED_TOKENS = 64  # of an answer of part latency: more tell nothing new of TPOT


class CannotMeasure(ValueError):
    """Why a layout is not measured; the message names the option."""


def job(options: argparse.Namespace, store: Store, layout: Layout) -> Job:
    """What the engine of a layout is to do.

    Raises:
        CannotMeasure: a setting that can't be met, by name.
    """
    asked = set(options.parts)
    return Job(
        shape=options.shape,
        layout=layout,
        ranks=options.ranks,
        device=options.device,
        models=options.models,
        context_tokens=context_tokens(options),
        latency=_latency(options) if "latency" in asked else None,
        peak=_peak(options) if "peak" in asked else None,
        burst=_burst(options, store, layout) if "burst" in asked else None,
        shift=options.shift,
        engine=options.engine,
        profile=options.profile,
    )


def _latency(options: argparse.Namespace) -> Latency:
    return Latency(inputs=tuple(options.inputs), output_tokens=min(MOST_TIMED_TOKENS, options.output))


def _peak(options: argparse.Namespace) -> Peak:
    return Peak(
        input_tokens=options.peak_input,
        output_tokens=options.output,
        first_requests=options.requests or FIRST_REQUESTS_PER_RANK * options.ranks,
        seconds=options.peak_seconds,
    )


def _burst(options: argparse.Namespace, store: Store, layout: Layout) -> Burst:
    """The trace, scaled by what was given or by TP's peak; TP itself may have that still before it."""
    trace = Burst(
        input_tokens=options.peak_input,
        output_tokens=options.output,
        capacity_tokens_per_second=options.burst_capacity,
        calm_seconds=options.calm_seconds,
        burst_seconds=options.burst_seconds,
    )
    if layout == LAYOUTS[0] and "peak" in options.parts:
        return trace
    try:
        return trace.resolved(store.peak_of_reference(options.shape, options.ranks))
    except ValueError as error:
        raise CannotMeasure(f"--parts burst: {error}") from None


def context_tokens(options: argparse.Namespace) -> int:
    """Longest request, in and out, rounded up; of all parts, so that each command starts the same engine.

    Raises:
        CannotMeasure: the shape has fewer positions.
    """
    longest: int = max(*options.inputs, options.peak_input) + options.output
    needed = max(LEAST_CONTEXT_TOKENS, CONTEXT_STEP_TOKENS * math.ceil(longest / CONTEXT_STEP_TOKENS))
    limit: int = shapes.SHAPES[options.shape]["max_position_embeddings"]
    if needed > limit:
        raise CannotMeasure(f"--inputs: {options.shape} has {limit} positions, {needed} are needed")
    return needed


def run(made: Job, store: Store, seconds: float | None) -> None:
    """Run the engine of a job, for at most so many seconds.

    Raises:
        ChildFailed: it failed or was ended; what it has measured stays.
    """
    records = store.records_path(made.shape, made.layout, made.ranks)
    Child(
        name=f"{made.shape} {made.layout} x{made.ranks}",
        module="bench.gpu.engine",
        words=(made.model_dump_json(), str(records)),
        log=store.log_path(made),
        variables=variables(made.device, made.ranks),
    ).run(seconds)


def report(options: argparse.Namespace, store: Store) -> list[str]:
    """Print the lines of everything in ``--out``, and write them and the page beside the records.

    Returns:
        What makes some of it worth less.
    """
    results, name = store.results(options.shape, options.ranks), f"{options.shape}.x{options.ranks}"
    found = lines(options.shape, options.ranks, results)
    text = "".join(json.dumps(line) + "\n" for line in found)
    (store.folder / f"{name}.jsonl").write_text(text)
    (store.folder / f"{name}.html").write_text(page(f"{options.shape} on {options.ranks} ranks", results, found))
    sys.stdout.write(text)
    peaks = {layout: last(records, "peak") for layout, records in results.items()}
    growing = [
        f"{name}.{layout}: throughput was still growing when --peak-seconds were over"
        for layout, record in peaks.items()
        if record and not record["flat"]
    ]
    return [*incomparable(results), *growing]


def main() -> None:
    """Entry point. A layout that fails does not keep the others from being measured."""
    options, begin = parse(), time.monotonic()
    store, failed = Store(Path(options.out)), []
    try:
        for layout in (each for each in LAYOUTS if each in options.layouts):
            try:
                run(job(options, store, layout), store, _left(options.limit_seconds, begin))
            except (ChildFailed, CannotMeasure) as failure:
                failed.append(f"{layout}: {failure}")
    finally:
        sys.stderr.write("".join(f"bench: {each}\n" for each in report(options, store)))
    if failed:
        raise SystemExit("\n".join(failed))


def _left(limit_seconds: float | None, begin: float) -> float | None:
    """Seconds left to the command; None: any number.

    Raises:
        CannotMeasure: none.
    """
    if limit_seconds is None:
        return None
    left = begin + limit_seconds - time.monotonic()
    if left <= 0:
        raise CannotMeasure(f"--limit-seconds: {limit_seconds:g} were over before it began")
    return left


def parse() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_engine_options(parser)
    add = parser.add_argument
    first = f"at once in the first round of part peak; {FIRST_REQUESTS_PER_RANK} a rank when left out"
    add("--shape", default="llama-70b-fp8", choices=shapes.SHAPES)
    add("--layouts", nargs="*", default=list(LAYOUTS), choices=LAYOUTS, help="to measure now; none only prints")
    add("--parts", nargs="+", default=list(PARTS), choices=PARTS, help="start is always measured")
    add("--inputs", type=count, nargs="+", default=[2048, 4096, 8192, 16384, 32768], help="tokens, of part latency")
    add("--peak-input", type=count, default=4096, help="tokens of each request of parts peak and burst")
    add("--output", type=count, default=250, help="tokens of each answer")
    add("--requests", type=count, help=first)
    add("--peak-seconds", type=float, default=150.0, help="no round of part peak begins that would end later")
    add("--burst-capacity", type=float, help="tokens/s that the trace is scaled by; TP's peak when left out")
    add("--calm-seconds", type=float, default=10.0, help="between bursts")
    add("--burst-seconds", type=float, default=10.0)
    add("--models", default="/tmp/gearshift-shapes", help="folder for the configurations")
    add("--profile", help="folder for a kernel trace of one prefill")
    options = parser.parse_args()
    if options.output < 2:
        parser.error("argument --output: 1 has no time per output token")
    return options


if __name__ == "__main__":
    main()
