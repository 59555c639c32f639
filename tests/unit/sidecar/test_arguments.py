# SPDX-License-Identifier: Apache-2.0
"""Command lines and processor lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearshift.sidecar.arguments import find_options, omp_threads_bind, split_whole, take_option
from gearshift.sidecar.backoff import Backoff


@pytest.mark.parametrize(
    ("cpus", "ranks", "bind"),
    [
        ([0, 1], 2, "0|1"),
        ([0, 1], 4, "0|1|0|1"),
        ([3], 2, "3|3"),
        ([0, 1, 2, 3], 2, "0,1|2,3"),
        ([4, 5, 6, 9, 10], 2, "4,5|6,9"),
        ([0, 1], 1, "0,1"),
    ],
)
def test_every_rank_gets_processors(cpus: list[int], ranks: int, bind: str) -> None:
    assert omp_threads_bind(cpus, ranks) == bind


@given(st.lists(st.integers(0, 255), unique=True, min_size=1, max_size=64), st.integers(1, 16))
def test_no_processor_is_shared_while_there_are_enough(cpus: list[int], ranks: int) -> None:
    groups = [group.split(",") for group in omp_threads_bind(cpus, ranks).split("|")]
    assert len(groups) == ranks
    used = [cpu for group in groups for cpu in group]
    assert {int(cpu) for cpu in used} <= set(cpus)
    if len(cpus) >= ranks:
        assert len(used) == len(set(used))


@pytest.mark.parametrize(("cpus", "ranks"), [([], 1), ([0], 0)])
def test_no_processor_or_no_rank_is_an_error(cpus: list[int], ranks: int) -> None:
    with pytest.raises(ValueError, match="cannot bind"):
        omp_threads_bind(cpus, ranks)


def test_the_last_value_of_an_option_wins_and_all_are_taken() -> None:
    assert take_option(["--a", "1", "--b", "--a=2", "x"], "--a") == ("2", ["--b", "x"])
    assert take_option(["--ab", "1"], "--a") == (None, ["--ab", "1"])


def test_options_are_found_in_both_spellings() -> None:
    assert find_options(["--data_parallel_size=2", "-tp", "8", "tp"], ["--data-parallel-size", "-tp", "--port"]) == [
        "--data-parallel-size",
        "-tp",
    ]


@given(st.floats(0.01, 1.0), st.integers(1, 8))
def test_the_shares_never_exceed_the_whole(total: float, residents: int) -> None:
    assert split_whole(total, residents) * residents <= total + 1e-9


def test_a_process_that_keeps_ending_waits_longer_each_time_up_to_a_limit() -> None:
    backoff = Backoff(first=1.0, most=8.0, reset_after=600.0)
    assert [backoff.after(3.0) for _ in range(6)] == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert backoff.after(700.0) == 1.0
    assert backoff.after(3.0) == 2.0
