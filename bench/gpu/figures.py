# SPDX-License-Identifier: Apache-2.0
"""From records to figures and to JSON lines with the ratio to the reference layout. Pure."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from bench.gpu.store import Record, last

WINDOW_SECONDS: Final = 5.0
"""Peak throughput of the bursty trace is that of the best window of this length."""

Figures = dict[str, tuple[float, str]]
"""Value and unit by name."""

Results = Mapping[str, Sequence[Record]]
"""Records by layout, the reference first."""


def figures(records: Sequence[Record]) -> dict[str, Figures]:
    """Every figure of one layout by part; of a part that was measured more than once the last one counts."""
    newest = {part: record for part in _READ if (record := last(list(records), part))}
    found = {part: _READ[part](record) for part, record in newest.items()}
    starts = [each for each in records if each["part"] == "start"]
    return ({"start": _starts(starts)} if starts else {}) | found


def _starts(starts: Sequence[Record]) -> Figures:
    """The first start and, where there is a second one, the last, which had warm compile caches."""
    found: Figures = {}
    for suffix, record in zip(("", ".warm"), [*starts[:1], *starts[1:][-1:]], strict=False):
        found[f"start{suffix}"] = (record["seconds"], "s")
        found[f"ready{suffix}"] = (record["readySeconds"], "s")
        found |= {f"start{suffix}.{name}": (seconds, "s") for name, seconds in record["phases"].items()}
    for record in starts[-1:]:
        found |= {f"weights.{tree}": (round(size / 2**30, 3), "GiB") for tree, size in record["weightsBytes"].items()}
        found["kv_cache"] = (record["kvTokens"], "tokens")
        if "thresholdTokens" in record:
            found["threshold"] = (record["thresholdTokens"], "tokens")
    return found


def _latency(record: Record) -> Figures:
    found: Figures = {}
    for length, times in record["times"].items():
        found[f"ttft.{length}"] = (times["ttft_ms"], "ms")
        found[f"tpot.{length}"] = (times["tpot_ms"], "ms")
    return found


def _peak(record: Record) -> Figures:
    found: Figures = {f"throughput.{requests}": (rate, "tokens/s") for requests, rate in record["rounds"]}
    return found | {"throughput": (max(rate for _, rate in record["rounds"]), "tokens/s")}


def _burst(record: Record) -> Figures:
    ttft, tpot = ([each[index] for each in record["requests"]] for index in (1, 2))
    return {
        "burst.requests": (len(ttft), "requests"),
        "burst.ttft": (round(statistics.median(ttft), 2), "ms"),
        "burst.ttft_p90": (round(statistics.quantiles(ttft, n=10, method="inclusive")[-1], 2), "ms"),
        "burst.tpot": (round(statistics.median(tpot), 3), "ms"),
        "burst.throughput": (round(max(rate for _, rate in windows(record)), 1), "tokens/s"),
    }


def windows(record: Record) -> list[tuple[float, float]]:
    """End of each window of `WINDOW_SECONDS` of the bursty trace, and its tokens per second."""
    bins, width = record["tokens"], record["bin_seconds"]
    count = round(WINDOW_SECONDS / width)
    ends = range(min(count, len(bins)), len(bins) + 1)
    return [(end * width, sum(bins[max(0, end - count) : end]) / WINDOW_SECONDS) for end in ends]


_READ: Final[dict[str, Callable[[Record], Figures]]] = {"latency": _latency, "peak": _peak, "burst": _burst}


def lines(shape: str, ranks: int, results: Results) -> list[dict[str, Any]]:
    """JSON lines of all layouts; the first is the reference of what was measured with the same settings."""
    reference = next(iter(results.values()), [])
    base = figures(reference)
    return [
        _line(f"{shape}.x{ranks}.{layout}.{what}", value, unit, base[part].get(what) if same else None)
        for layout, records in results.items()
        for part, found in figures(records).items()
        for same in [part in base and _settings(records, part) == _settings(reference, part)]
        for what, (value, unit) in found.items()
    ]


def _line(name: str, value: float, unit: str, reference: tuple[float, str] | None) -> dict[str, Any]:
    base = reference[0] if reference else None
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "reference": base,
        "ratio": round(value / base, 4) if base else None,
    }


def incomparable(results: Results) -> list[str]:
    """The parts that a layout has measured with other settings than the reference: they have no ratio."""
    if not results:
        return []
    name, reference = next(iter(results.items()))
    return [
        f"part {part} of {layout} was measured with {_settings(records, part)}, that of {name} with "
        f"{_settings(reference, part)}: measure one of them again, or use an empty --out"
        for layout, records in results.items()
        for part in figures(records)
        if part in figures(reference) and _settings(records, part) != _settings(reference, part)
    ]


def _settings(records: Sequence[Record], part: str) -> dict[str, Any]:
    """Settings that change what is measured: neither how long a peak may be sought nor which inputs are among them."""
    record = last(list(records), part)
    settings = record["settings"] if record else {}
    return {name: value for name, value in settings.items() if name not in {"seconds", "inputs"}}
