# SPDX-License-Identifier: Apache-2.0
"""How far load has risen before a new pod could serve, and how long that is remembered."""

import pytest

from gearshift.policy.samples import Sample
from gearshift.policy.surges import Surge, rise, surged
from tests.unit.policy.build import NOW


@pytest.mark.parametrize(
    ("works", "expected"),
    [
        ((), 0.0),  # nothing to compare with
        ((1.0, 1.0, 1.0), 1.0),
        ((1.0, 0.5, 1.9), 1.5),  # from the least of them
        ((2.5, 3.0, 2.0), 0.0),  # it falls
        ((0.1, 1.8, 1.8, 1.8), 0.2),  # the first of them is too long ago
    ],
)
def test_a_rise_is_from_the_least_that_was_seen_in_time(works: tuple[float, ...], expected: float) -> None:
    samples = [Sample(NOW - 30 * (len(works) - n), work, 0) for n, work in enumerate(works)]
    assert rise(2.0, samples, NOW - 90) == pytest.approx(expected)


HIGH, LOW = Surge(NOW - 1000, 2.0), Surge(NOW - 500, 1.0)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (Surge(NOW, 3.0), (Surge(NOW, 3.0),)),  # outlasts both
        (Surge(NOW, 1.5), (HIGH, Surge(NOW, 1.5))),
        (Surge(NOW, 0.5), (HIGH, LOW, Surge(NOW, 0.5))),
        (Surge(NOW - 300, 0.5), (HIGH, LOW)),  # of the last minutes: the higher one will do
        (Surge(NOW + 2700, 0.5), (LOW, Surge(NOW + 2700, 0.5))),  # an hour later
        (Surge(NOW - 500, 1.0), (HIGH, Surge(NOW - 500, 1.0))),  # the same moment, told anew
    ],
)
def test_the_highest_surges_of_the_hour_are_remembered(now: Surge, expected: tuple[Surge, ...]) -> None:
    assert surged((HIGH, LOW), now) == expected
