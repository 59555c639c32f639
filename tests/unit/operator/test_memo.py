# SPDX-License-Identifier: Apache-2.0
"""What is kept about an object that stays the same."""

import pytest

from gearshift.operator.memo import Memo


def test_the_very_same_object_is_worked_out_once_and_an_equal_one_anew() -> None:
    worked_out: list[list[int]] = []

    def total(numbers: list[int]) -> int:
        worked_out.append(numbers)
        return sum(numbers)

    memo, numbers = Memo(total), [1, 2]
    assert [memo(numbers), memo(numbers), memo([1, 2]), memo(numbers)] == [3, 3, 3, 3]
    assert len(worked_out) == 3


def test_a_part_may_be_what_counts() -> None:
    part = [1, 2]
    memo: Memo[tuple[list[int], str], list[int]] = Memo(lambda pair: list(pair[0]), part=lambda pair: pair[0])
    assert memo((part, "a")) is memo((part, "b"))
    assert memo((part, "a")) is not memo(([1, 2], "a"))


def test_a_failure_is_not_kept() -> None:
    zero = 0
    memo: Memo[int, float] = Memo(lambda number: 1 / (number + zero))
    with pytest.raises(ZeroDivisionError):
        memo(0)
    zero = 2
    assert memo(0) == 0.5
