# SPDX-License-Identifier: Apache-2.0
"""What the command line makes of a run: jobs, and refusals before an engine starts."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.gpu.child import Child, ChildFailed
from bench.gpu.job import Job, Layout
from bench.gpu.shift import CannotMeasure, job, main, parse
from bench.gpu.store import Store, last


def jobs(monkeypatch: pytest.MonkeyPatch, store: Store, layout: Layout, *words: str) -> Job:
    monkeypatch.setattr(sys, "argv", ["shift", *words])
    return job(parse(), store, layout)


def measured(store: Store, layout: str, *rounds: tuple[int, float]) -> None:
    record: dict[str, Any] = {"part": "peak", "settings": {}, "rounds": rounds, "flat": True}
    with store.records_path("llama-70b-fp8", layout, 4).open("a") as file:
        file.write(json.dumps(record) + "\n")


def test_every_command_starts_the_same_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = Store(tmp_path)
    whole = jobs(monkeypatch, store, "TP")
    only_start = jobs(monkeypatch, store, "TP", "--parts", "start")
    assert only_start.context_tokens == whole.context_tokens == 33024
    assert (only_start.latency, only_start.peak, only_start.burst) == (None, None, None)
    assert whole.peak is not None
    assert whole.peak.first_requests == 96
    assert Job.model_validate_json(whole.model_dump_json()) == whole


def test_the_trace_of_all_layouts_is_scaled_by_what_the_first_one_reached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    first = jobs(monkeypatch, store, "TP").burst
    assert first is not None
    assert first.capacity_tokens_per_second is None
    measured(store, "TP", (96, 20_104.0), (192, 20_003.0))
    measured(store, "DP", (96, 30_000.0))
    for layout in ("DP", "Shift"):
        assert jobs(monkeypatch, store, layout).burst == first.resolved(20_104.0)
    given = jobs(monkeypatch, store, "Shift", "--burst-capacity", "9000").burst
    assert given is not None
    assert given.capacity_tokens_per_second == 9000


def test_a_trace_without_a_scale_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(CannotMeasure, match="needs the peak of TP"):
        jobs(monkeypatch, Store(tmp_path), "Shift")


def test_inputs_beyond_the_positions_of_a_shape_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(CannotMeasure, match="qwen3-32b has 40960 positions, 41216 are needed"):
        jobs(monkeypatch, Store(tmp_path), "TP", "--shape", "qwen3-32b", "--inputs", "40960")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--shift", "{"], "argument --shift: '{' is not JSON"),
        (["--engine", "[]"], "argument --engine: '[]' is not a JSON object"),
        (["--inputs", "0"], "argument --inputs: '0' is not a number from 1"),
        (["--ranks", "3"], "argument --ranks: invalid choice: 3"),
    ],
)
def test_a_bad_option_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["shift", *words])
    with pytest.raises(SystemExit):
        parse()
    assert why in capsys.readouterr().err


def test_the_store_keeps_what_was_measured(tmp_path: Path) -> None:
    store = Store(tmp_path)
    measured(store, "TP", (96, 1.0))
    measured(store, "TP", (96, 2.0))
    found = store.results("llama-70b-fp8", 4)
    assert list(found) == ["TP"]
    newest = last(found["TP"], "peak")
    assert newest is not None
    assert newest["rounds"] == [[96, 2.0]]
    assert store.results("llama-70b-fp8", 8) == {}


def test_a_child_that_fails_shows_its_last_words(tmp_path: Path) -> None:
    child = Child(name="x TP", module="json.tool", words=("no-such-file",), log=tmp_path / "log")
    with pytest.raises(ChildFailed, match=r"(?s)x TP: failed with exit status \d.*no-such-file"):
        child.run()


def test_a_child_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    child = Child(name="x TP", module="http.server", words=("0", "--bind", "127.0.0.1"), log=tmp_path / "log")
    with pytest.raises(ChildFailed, match="x TP: ended after 0 s"):
        child.run(0.2)


def test_what_fails_is_told_for_each_layout_and_nothing_is_begun_when_time_is_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ["--layouts", "DP", "Shift", "--parts", "burst", "--burst-capacity", "9", "--limit-seconds", "0"]
    monkeypatch.setattr(sys, "argv", ["shift", "--out", str(tmp_path), *words])
    with pytest.raises(SystemExit) as ended:
        main()
    told = str(ended.value).splitlines()
    assert told == [f"{layout}: --limit-seconds: 0 were over before it began" for layout in ("DP", "Shift")]
    assert not list(tmp_path.glob("*.log"))


def test_lines_of_what_there_is_are_printed_without_measuring(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured(Store(tmp_path), "TP", (96, 20_000.0))
    monkeypatch.setattr(sys, "argv", ["shift", "--out", str(tmp_path), "--layouts"])
    main()
    names = [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert names == ["llama-70b-fp8.x4.TP.throughput.96", "llama-70b-fp8.x4.TP.throughput"]
    assert "llama-70b-fp8 on 4 ranks" in (tmp_path / "llama-70b-fp8.x4.html").read_text()
