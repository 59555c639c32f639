# SPDX-License-Identifier: Apache-2.0
"""What was needed lately keeps pods, for as long as it may come again."""

import pytest

from gearshift.policy.needs import kept, lasting, rest_seconds
from gearshift.policy.plan import Need
from tests.unit.policy.build import LONG_AGO, NOW


@pytest.mark.parametrize(
    ("before", "stays"),
    [
        (Need(NOW - 100, 3, 3, 2), False),  # no more than now
        (Need(NOW - 100, 3, 5, 2), True),
        (Need(NOW - 100, 3, 3, 4), True),
        (Need(NOW - 901, 9, 9, 9), False),
        (Need(NOW, 9, 9, 9), False),  # the same moment, told anew
    ],
)
def test_a_need_lasts_until_another_outlasts_it(before: Need, stays: bool) -> None:
    now = Need(NOW, 3, 4, 3)
    assert lasting((before,), now) == ((before, now) if stays else (now,))


@pytest.mark.parametrize(
    ("needs", "watched_since", "expected"),
    [
        ((), LONG_AGO, 0),
        ((Need(NOW, 1, 2, 1),), LONG_AGO, 2),
        ((Need(NOW - 100, 5, 6, 2), Need(NOW, 1, 2, 1)), LONG_AGO, 6),  # room was needed a moment ago
        ((Need(NOW - 200, 5, 6, 2), Need(NOW, 1, 1, 1)), LONG_AGO, 2),  # a while ago: only what its load kept busy
        ((Need(NOW - 200, 5, 6, 2), Need(NOW, 1, 1, 1)), NOW - 600, 4),  # little is known: twice of it
    ],
)
def test_room_is_kept_for_minutes_and_load_for_a_quarter_of_an_hour(
    needs: tuple[Need, ...], watched_since: float, expected: int
) -> None:
    assert kept(needs, NOW, watched_since) == expected


@pytest.mark.parametrize(("regrets", "seconds"), [(0, 600), (1, 600), (2, 1200), (3, 2400), (40, 86_400)])
def test_rest_doubles_with_regrets_up_to_a_day(regrets: int, seconds: float) -> None:
    assert rest_seconds(regrets) == seconds
