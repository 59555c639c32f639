# SPDX-License-Identifier: Apache-2.0
"""Which tree runs a step."""

import pytest

from gearshift.engine.shift.steps import Mode, Steps


@pytest.mark.parametrize(
    ("threshold", "tokens", "mode"),
    [
        (64, 64, Mode.TENSOR),
        (64, 65, Mode.SEQUENCE),
        (0, 1, Mode.SEQUENCE),
        (0, 0, Mode.TENSOR),
        (2**31 - 1, 10**6, Mode.TENSOR),
    ],
)
def test_more_tokens_than_the_threshold_run_sequence_parallel(threshold: int, tokens: int, mode: Mode) -> None:
    steps = Steps(threshold, floor_tokens=0)
    with steps.step(tokens):
        assert steps.mode is mode
    assert steps.mode is Mode.TENSOR
    other = Mode.SEQUENCE if mode is Mode.TENSOR else Mode.TENSOR
    assert steps.counters.steps == {mode: min(tokens, 1), other: 0}
    assert steps.counters.tokens == {mode: tokens, other: 0}


def test_a_step_that_fails_leaves_no_mode_behind() -> None:
    steps = Steps(0, floor_tokens=0)
    with pytest.raises(RuntimeError), steps.step(5):
        raise RuntimeError
    assert steps.mode is Mode.TENSOR


def test_warm_up_forces_a_mode_whatever_the_size() -> None:
    steps = Steps(64, floor_tokens=0)
    with steps.force(Mode.SEQUENCE):
        assert steps.choose(1) is Mode.SEQUENCE
        with steps.force(Mode.TENSOR):
            assert (steps.choose(100), steps.mode) == (Mode.TENSOR, Mode.TENSOR)
        assert steps.mode is Mode.SEQUENCE
    assert (steps.choose(1), steps.forced, steps.mode) == (Mode.TENSOR, None, Mode.TENSOR)


def test_a_threshold_never_falls_below_the_captured_graphs() -> None:
    steps = Steps(64, floor_tokens=32)
    with pytest.raises(ValueError, match="threshold_tokens: 31 is below the largest captured graph, 32 tokens"):
        steps.set_threshold(31)
    assert steps.threshold_tokens == 64
    steps.set_threshold(32)
    assert steps.threshold_tokens == 32
