# SPDX-License-Identifier: Apache-2.0
"""The fit on the shipped measurements: how far off it is on rows left out, and that it makes what is shipped."""

from functools import cache
from pathlib import Path

import pytest

from gearshift.api.vocabulary import Layout
from gearshift.perf.calibration import find_calibration
from gearshift.perf.silicon import Measured, SiliconError
from tools.calibrate.bench import benched
from tools.calibrate.fit import fit, pooled
from tools.calibrate.judge import Verdict, left_out, verdicts
from tools.calibrate.rows import Key, by_key, combination, folds, measurement, read, shipped

TARGET = 0.1
TTFT_LIMITS = {
    # what was measured differs by more than the target where the table tells no difference: docs/performance-model.md
    "h100_sxm trtllm openai/gpt-oss-120b": 0.45,
    "h200_sxm vllm nvidia/Llama-3.1-8B-Instruct-FP8": 0.35,
}
TPOT_LIMITS = {"h100_sxm trtllm openai/gpt-oss-120b": 0.3}


@cache
def groups() -> dict[Key, list[Measured]]:
    return by_key(shipped())


@cache
def found() -> dict[str, Verdict]:
    """Errors on rows left out, each once."""
    return verdicts(left_out(groups(), measurement))


def names() -> list[str]:
    return sorted({f"{key.gpu} {key.backend} {row.deployment.model}" for key, rows in groups().items() for row in rows})


@pytest.mark.parametrize("name", names())
def test_rows_left_out_are_met_within_ten_percent(name: str) -> None:
    assert found()[name].ttft <= TTFT_LIMITS.get(name, TARGET)
    assert found()[name].tpot <= TPOT_LIMITS.get(name, TARGET)


def test_the_shipped_calibrations_are_what_the_fit_makes() -> None:
    prior = pooled(list(groups().values()))
    key = next(key for key in groups() if key.architecture == "kimi-k2")
    stored = find_calibration(key.gpu, key.backend, "moonshotai/Kimi-K2.5")
    made = fit(key, groups()[key], prior)
    assert made.ttft.factors == pytest.approx(stored.ttft.factors, rel=1e-3, abs=1e-3)
    assert made.tpot.factors == pytest.approx(stored.tpot.factors, rel=1e-3, abs=1e-3)


def test_folds_keep_combinations_together() -> None:
    rows = next(rows for key, rows in groups().items() if key.architecture == "deepseek-v3")
    for kept, left in folds(rows, combination, 8, seed=1):
        assert {combination(row) for row in kept}.isdisjoint({combination(row) for row in left})
        assert len(kept) + len(left) == len(rows)


@pytest.mark.parametrize("layout", [Layout.TP, Layout.SHIFT])
def test_the_benchmarks_of_this_repository_are_rows(layout: Layout) -> None:
    found = benched(layout)
    assert {row.workload.input_tokens for row in found} >= {2048, 4096}
    assert all(0.005 < row.tpot_seconds < row.ttft_seconds < 0.5 for row in found)


def test_a_wrong_row_is_named(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("system,tp_size\nh100_sxm,two\n")
    with pytest.raises(SiliconError, match=r"rows.csv:2: column 'attention_dp_size' is missing|rows.csv:2: invalid"):
        read(table)
