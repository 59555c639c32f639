# SPDX-License-Identifier: Apache-2.0
"""When two trees agree on a text, and when the comparison says nothing."""

import math
from typing import Any

import pytest

from bench.gpu.likelihood import faults, lines
from bench.gpu.scoring import windows

OWN = {"TP": {"TP": 3, "SP": 0}, "SP": {"TP": 0, "SP": 3}}


def scores(factor: float = 1.0, tokens: int = 64, **changed: dict[str, int]) -> dict[str, dict[str, Any]]:
    base = [-1.0 - index % 7 for index in range(tokens)]
    values = {"TP": base, "SP": [value * factor for value in base]}
    return {tree: {"logprobs": values[tree], "steps": (OWN | changed)[tree]} for tree in OWN}


@pytest.mark.parametrize("factor", [1.0, 1.0009, 0.9991])
def test_a_small_difference_is_well(factor: float) -> None:
    assert faults(scores(factor), 0.001) == []


@pytest.mark.parametrize("factor", [1.0011, 0.9989, 1.095, math.nan])
def test_a_larger_one_is_a_fault(factor: float) -> None:
    (fault,) = faults(scores(factor), 0.001)
    assert "0.10% is the limit" in fault


@pytest.mark.parametrize("steps", [{"TP": 1, "SP": 3}, {"TP": 3, "SP": 0}, {"TP": 0, "SP": 0}])
def test_steps_in_the_wrong_tree_are_a_fault_although_all_is_equal(steps: dict[str, int]) -> None:
    (fault,) = faults(scores(SP=steps), 0.001)
    assert "only SP should run" in fault


def test_a_text_that_is_too_short_says_nothing() -> None:
    assert faults(scores(tokens=31), 0.001) == ["only 31 tokens were scored, at least 32 are needed"]


def test_lines_have_the_tensor_parallel_tree_as_reference() -> None:
    found = {line["name"]: line for line in lines("m", scores(1.01))}
    assert found["m.TP.nll"]["ratio"] == 1.0
    assert found["m.SP.nll"]["ratio"] == pytest.approx(1.01)
    assert found["m.token_difference.max"]["value"] == pytest.approx(0.07)


def test_a_text_is_cut_into_equal_windows() -> None:
    assert windows(list(range(10)), 4, 9) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert windows(list(range(10)), 4, 1) == [[0, 1, 2, 3]]
    assert windows([1, 2, 3], 4, 9) == [[1, 2, 3]]
