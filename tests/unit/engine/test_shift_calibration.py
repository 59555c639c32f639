# SPDX-License-Identifier: Apache-2.0
"""The threshold that follows from measured step times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearshift.engine.shift.calibration import Sample, crossing, gain, sizes

SECONDS = st.floats(0.001, 1.0)


def samples(*gains: float) -> list[Sample]:
    """Samples at 100, 200, ... tokens, by what the SP tree saves."""
    return [Sample(100 * (i + 1), 1.0 + saved, 1.0) for i, saved in enumerate(gains)]


@pytest.mark.parametrize(
    ("gains", "threshold"),
    [
        ((0.1, 0.2, 0.3), 50),
        ((-0.1, -0.2, -0.3), 400),
        ((-0.1, 0.1, 0.3), 150),
        ((-0.3, 0.1, 0.3), 175),
        ((0.1, -0.1, 0.1), 250),
        ((0.0, 0.0), 50),
    ],
)
def test_the_threshold_is_where_the_sequence_parallel_tree_begins_to_win_for_good(
    gains: tuple[float, ...], threshold: int
) -> None:
    assert crossing(samples(*gains), floor=50, ceiling=400) == threshold


@given(
    st.lists(
        st.tuples(st.integers(1, 5000), SECONDS, SECONDS), min_size=1, max_size=12, unique_by=lambda each: each[0]
    ),
    st.integers(0, 600),
    st.integers(600, 5000),
)
def test_no_measured_size_above_the_threshold_loses(
    measured: list[tuple[int, float, float]], floor: int, ceiling: int
) -> None:
    found = [Sample(*each) for each in measured]
    threshold = crossing(found, floor, ceiling)
    assert floor <= threshold <= ceiling
    if threshold < ceiling:
        assert all(gain(sample) >= 0 for sample in found if sample.tokens > max(threshold, floor) + 1)


@given(st.integers(0, 5000), st.integers(1, 8192))
def test_sizes_lie_between_floor_and_ceiling_and_end_there(floor: int, ceiling: int) -> None:
    found = sizes(floor, ceiling)
    assert found[-1] == ceiling
    assert found == sorted(set(found))
    assert all(size >= min(max(16, floor), ceiling) for size in found)
    assert len(found) < 24
