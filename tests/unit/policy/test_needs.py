# SPDX-License-Identifier: Apache-2.0
"""What was needed lately keeps pods, for as long as it may come again."""

import pytest

from gearshift.policy.needs import kept, lasting, rest_seconds, rested
from gearshift.policy.plan import Memory, Need, ScaleMemory
from gearshift.policy.surges import Surge
from tests.unit.policy.build import LONG_AGO, NOW


@pytest.mark.parametrize(
    ("before", "stays"),
    [
        (Need(NOW - 100, 3, 3, 2), False),  # no more than now
        (Need(NOW - 100, 3, 5, 2), True),
        (Need(NOW - 100, 3, 3, 4), True),
        (Need(NOW - 100, 3, 3, 2, 2.5), True),
        (Need(NOW - 901, 9, 9, 9), False),
        (Need(NOW, 9, 9, 9), False),  # the same moment, told anew
    ],
)
def test_a_need_lasts_until_another_outlasts_it(before: Need, stays: bool) -> None:
    now = Need(NOW, 3, 4, 3)
    assert lasting((before,), now) == ((before, now) if stays else (now,))


@pytest.mark.parametrize(
    ("needs", "rise", "watched_since", "expected"),
    [
        ((), 0.0, LONG_AGO, 0),
        ((Need(NOW, 1, 2, 1, 0.2),), 0.0, LONG_AGO, 2),
        ((Need(NOW - 100, 5, 6, 2, 1.5), Need(NOW, 1, 2, 1)), 0.0, LONG_AGO, 6),  # room was needed a moment ago
        ((Need(NOW - 400, 5, 6, 2, 1.5), Need(NOW, 1, 1, 1)), 0.0, LONG_AGO, 2),  # a while ago: only what was busy
        ((Need(NOW - 400, 5, 6, 2, 1.5), Need(NOW, 1, 1, 1)), 0.0, NOW - 600, 4),  # little is known: twice the load
        ((Need(NOW - 400, 5, 6, 3, 0.2), Need(NOW, 1, 1, 1)), 0.0, NOW - 600, 3),  # what misses asked for is not load
        ((Need(NOW, 1, 1, 1, 0.6),), 1.5, LONG_AGO, 3),  # load, and the surge that it may take
        ((Need(NOW - 400, 1, 1, 1, 0.9), Need(NOW, 1, 1, 1, 0.1)), 0.8, LONG_AGO, 1),
    ],
)
def test_room_is_kept_for_minutes_and_load_for_a_quarter_of_an_hour(
    needs: tuple[Need, ...], rise: float, watched_since: float, expected: int
) -> None:
    surges = (Surge(NOW - 3000, rise),) if rise else ()
    assert kept(ScaleMemory(9, needs=needs, surges=surges), NOW, watched_since) == expected


@pytest.mark.parametrize(
    ("scale", "watched_since", "expected"),
    [
        (ScaleMemory(3), LONG_AGO, True),
        (ScaleMemory(3), NOW - 200, False),
        (ScaleMemory(3, grown_at=NOW - 100), LONG_AGO, False),
        (ScaleMemory(3, shrunk_at=NOW - 20), LONG_AGO, False),
        (ScaleMemory(3, shrunk_at=NOW - 40), LONG_AGO, True),
        (ScaleMemory(3, shrunk_at=NOW - 40), NOW - 800, False),  # a burst may not have been seen yet
        (ScaleMemory(3, regretted_at=NOW - 500, regrets=1), LONG_AGO, False),
    ],
)
def test_pods_rest_between_changes_of_their_number(scale: ScaleMemory, watched_since: float, expected: bool) -> None:
    assert rested(NOW, scale, Memory(watched_since)) is expected


@pytest.mark.parametrize(("regrets", "seconds"), [(0, 600), (1, 600), (2, 1200), (3, 2400), (40, 86_400)])
def test_rest_doubles_with_regrets_up_to_a_day(regrets: int, seconds: float) -> None:
    assert rest_seconds(regrets) == seconds
