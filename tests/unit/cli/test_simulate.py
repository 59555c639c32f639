# SPDX-License-Identifier: Apache-2.0
"""``gearshift simulate`` from its arguments to its table, JSON and page, and what it says of wrong input."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gearshift.cli.__main__ import main

SPEC = """
apiVersion: gearshift.dev/v1alpha1
kind: InferenceService
metadata: {name: chat}
spec:
  model: {uri: hf://org/model}
  engine: {kind: Simulated}
  pod: {accelerators: 4}
  roles: [{name: Unified, replicas: 2, min: 1, max: 3}]
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "chat.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    rows = [{"timestamp": 400 * n, "input_length": 800, "output_length": 50, "hash_ids": [n]} for n in range(60)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_policies_stand_side_by_side(spec: Path, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["simulate", "--trace", str(trace), "--spec", str(spec)]
    assert main([*arguments, "--policy", "ours", "--policy", "static:1", "--policy", "reactive"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["policy", "ours", "static:1", "reactive", "ours:", "reactive:"]
    assert "against static:1" in lines[-1]


def test_json_has_every_figure(spec: Path, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--trace", str(trace), "--spec", str(spec), "--policy", "static:1:1", "--json"]) == 0
    (figures,) = json.loads(capsys.readouterr().out)
    assert (figures["policy"], figures["requests"], figures["good"], figures["reversals"]) == ("static:1:1", 60, 60, 0)
    assert figures["gpuHours"] == pytest.approx(2 * 4 * figures["seconds"] / 3600, rel=1e-2)
    assert figures["ttftSeconds"]["p50"] > 0 < figures["itlSeconds"]["p99"]


def test_the_page_needs_nothing_else(spec: Path, trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["simulate", "--trace", str(trace), "--spec", str(spec), "--html", str(page)]) == 0
    text = page.read_text()
    assert "<script" not in text
    assert "http" not in text
    plots = text.split("<svg")[1:]
    assert len(plots) == 6
    for plot in plots:
        ET.fromstring("<svg" + plot.split("</svg>")[0] + "</svg>")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--policy", "best"], "--policy: policy 'best' is unknown; known: ours, static:N, static:P:D, reactive"),
        (["--profile", "h300"], "--profile: 'h300' is not a profile; known: llama-3-70b-fp8-h200, tiny"),
        (
            ["--profile", "kimi-k2-int4_wo-h200-vllm"],
            "--profile: kimi-k2-int4_wo-h200-vllm: 564 GB of weights leave no",
        ),
        (["--speed", "0"], "--speed: 0.0 is not above 0"),
        (["--startup", "-1"], "--startup: -1.0 is below 0"),
        (["--max-requests", "0"], "--max-requests: 0 is below 1"),
        (["--reactive-target", "0"], "--reactive-target: 0.0 is not above 0"),
    ],
)
def test_wrong_arguments_are_named(
    changes: list[str], message: str, spec: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "--trace", str(trace), "--spec", str(spec), *changes]) == 2
    assert capsys.readouterr().err.startswith(f"gearshift: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not YAML"),
        ("- 1", "holds list, not an InferenceService"),
        (SPEC.replace("accelerators: 4", "accelerators: 3"), "pod.accelerators: Input should be 1, 2, 4 or 8"),
        (SPEC.replace("max: 3", "max: 1, replica: 2"), "roles.0.replica: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_spec_is_named(
    text: str, message: str, spec: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.write_text(text)
    assert main(["simulate", "--trace", str(trace), "--spec", str(spec)]) == 2
    assert message in capsys.readouterr().err


def test_files_that_are_missing_or_no_traces_are_named(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("{}\n")
    for trace in (tmp_path / "none.csv", wrong):
        assert main(["simulate", "--trace", str(trace), "--spec", str(spec)]) == 2
        assert str(trace) in capsys.readouterr().err
