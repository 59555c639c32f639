# SPDX-License-Identifier: Apache-2.0
"""How runs are compared with static fleets, and what plots are made of."""

from dataclasses import dataclass
from typing import cast

import pytest

from gearshift.sim.fleet.outcome import Outcome
from gearshift.sim.reports.compare import equal_goodput, standing
from gearshift.sim.reports.svg import MOST_POINTS, Series, plot, thinned


@dataclass
class Run:
    policy: str
    gpu_hours: float
    good: int
    goodput: float = 0.0

    def __post_init__(self) -> None:
        self.goodput = self.good / 100


def runs(*given: tuple[str, float, int]) -> list[Outcome]:
    return [cast("Outcome", Run(*each)) for each in given]


STATICS = (("static:1", 1.0, 50), ("static:2", 2.0, 90), ("static:3", 3.0, 90), ("static:4", 4.0, 100))


def test_the_best_static_fleet_has_the_most_goodput_then_the_fewest_hours() -> None:
    outcomes = runs(*STATICS[:3], ("ours", 1.5, 95))
    place = standing(outcomes[-1], outcomes)
    assert place is not None
    assert place.best == "static:2"
    assert place.goodput_over_best == pytest.approx(0.05)
    assert place.gpu_hours_saved == pytest.approx(0.25)
    assert place.goodput_over_equal == pytest.approx(0.95 - 0.7)
    assert standing(outcomes[-1], outcomes[-1:]) is None


@pytest.mark.parametrize(
    ("hours", "share"),
    [(1.0, 0.5), (1.25, 0.6), (2.0, 0.9), (2.5, 0.9), (3.5, 0.95), (4.0, 1.0), (0.9, None), (5.0, None)],
)
def test_equal_hours_lie_between_two_static_fleets(hours: float, share: float | None) -> None:
    found = equal_goodput(runs(*STATICS), hours)
    assert found == (None if share is None else pytest.approx(share))


def test_long_lines_are_thinned_and_keep_their_end() -> None:
    points = [(float(n), float(n)) for n in range(10_001)]
    assert len(thinned(points)) <= MOST_POINTS + 1
    assert thinned(points)[-1] == points[-1]
    assert thinned([]) == []


def test_names_are_escaped_and_nothing_is_plotted_without_points() -> None:
    drawn = plot("a<b", "x", "y", [Series("<one>", []), Series("dots", [(1.0, 2.0)], dots=True)])
    assert "<one>" not in drawn
    assert drawn.count("<circle") == 1
