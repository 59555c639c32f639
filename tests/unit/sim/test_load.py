# SPDX-License-Identifier: Apache-2.0
"""Arrivals, traces and figures of the load generator."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest

from gearshift.sim.load import (
    Arrival,
    LoadSpecError,
    Outcome,
    Phase,
    TraceError,
    draw_arrivals,
    parse_phases,
    read_trace,
    summarize,
)

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.6805900,396,109\n"
)
MOONCAKE = [
    {"timestamp": 1000, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]},
    {"timestamp": 3000, "input_length": 1000, "output_length": 6, "hash_ids": [0, 2]},
]
AIBRIX = [{"timestamp": 6011, "requests": [{"Prompt Length": 178, "Output Length": 8, "prompt": "Hi"}] * 2}]


def lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_phases_follow_one_another_at_their_rates() -> None:
    phases = [Phase(seconds=100, requests_per_second=1), Phase(seconds=100, requests_per_second=20)]
    arrivals = draw_arrivals(phases, seed=1, max_requests=10_000)
    early = [arrival for arrival in arrivals if arrival.at_seconds < 100]
    assert 70 < len(early) < 130
    assert 1800 < len(arrivals) - len(early) < 2200
    assert [arrival.at_seconds for arrival in arrivals] == sorted(arrival.at_seconds for arrival in arrivals)
    assert arrivals == draw_arrivals(phases, seed=1, max_requests=10_000)
    assert arrivals[:5] == draw_arrivals(phases, seed=1, max_requests=5)


def test_burstiness_spreads_the_gaps() -> None:
    def variation(burstiness: float) -> float:
        phase = Phase(seconds=1000, requests_per_second=10, burstiness=burstiness)
        times = [arrival.at_seconds for arrival in draw_arrivals([phase], 0, 100_000)]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        mean = sum(gaps) / len(gaps)
        return sum((gap - mean) ** 2 for gap in gaps) / len(gaps) / mean**2

    assert variation(1.0) == pytest.approx(1.0, rel=0.15)
    assert variation(8.0) == pytest.approx(8.0, rel=0.3)


def test_equal_prefix_ids_are_equal_prefixes() -> None:
    one = Arrival(0.0, 1100, 1, prompt_seed=1, prefix_ids=(7, 8)).prompt()
    other = Arrival(0.0, 1100, 1, prompt_seed=2, prefix_ids=(7, 9)).prompt()
    assert (len(one), len(other)) == (1100, 1100)
    assert one[:512] == other[:512]
    assert one[512:1024] != other[512:1024]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (AZURE, [(0.0, 374, 44), (4.0, 396, 109)]),
        (lines(MOONCAKE), [(0.0, 600, 5), (2.0, 1000, 6)]),
        (lines(AIBRIX), [(0.0, 178, 8), (0.0, 178, 8)]),
    ],
)
def test_traces_start_at_zero(tmp_path: Path, text: str, expected: list[tuple[float, int, int]]) -> None:
    plain, packed = tmp_path / "trace", tmp_path / "trace.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        arrivals = read_trace(path, 100)
        assert [each.at_seconds for each in arrivals] == pytest.approx([at for at, _, _ in expected])
        assert [(each.prompt_tokens, each.output_tokens) for each in arrivals] == [each[1:] for each in expected]
    assert len(read_trace(plain, 1)) == 1
    assert read_trace(plain, 100, speed=2)[-1].at_seconds == pytest.approx(expected[-1][0] / 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no request"),
        ('{"timestamp": 1}\n', ":1: the field 'hash_ids' is missing"),
        (lines(MOONCAKE) + "nonsense\n", ":3: Expecting value"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n", ":2: Invalid isoformat string"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6,many,2\n", ":2: invalid literal"),
    ],
)
def test_a_bad_trace_is_named_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(TraceError) as caught:
        read_trace(path, 100)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_bad_phases_are_named() -> None:
    with pytest.raises(LoadSpecError, match=r"phase 0\.seconds: .*greater than 0 \(value: -1\)"):
        parse_phases('[{"seconds": -1, "requests_per_second": 1}]')
    with pytest.raises(LoadSpecError, match=r"phase 0\.rate: Extra inputs"):
        parse_phases('[{"seconds": 1, "requests_per_second": 1, "rate": 3}]')


def test_figures_count_only_what_came_whole() -> None:
    arrival = Arrival(0.0, 10, 2, 0)
    good = Outcome(
        arrival=arrival,
        sent_at=1.0,
        ttft_seconds=0.25,
        gaps_seconds=[0.5],
        e2e_seconds=1.0,
        prompt_tokens=10,
        completion_tokens=2,
    )
    bad = Outcome(arrival=arrival, sent_at=1.5, failure="refused", ttft_seconds=9.0)
    figures = summarize([good, bad])
    assert (figures["requests"], figures["failed"], figures["failures"]) == (2, 1, {"refused": 1})
    assert figures["ttft_ms"] == {"p50": 250.0, "p90": 250.0, "p99": 250.0, "max": 250.0}
    assert figures["itl_ms"]["p50"] == 500.0
    assert (figures["seconds"], figures["output_tokens_per_second"]) == (1.0, 2.0)
    assert summarize([])["ttft_ms"]["p50"] is None
