# SPDX-License-Identifier: Apache-2.0
"""Start-up times as pods were seen to take them."""

from dataclasses import replace

import pytest

from gearshift.api.v1alpha1.status import InferenceServiceStatus, StartupStatus
from gearshift.policy.memory import fold, rebuild
from gearshift.policy.plan import Memory, Startup
from gearshift.policy.snapshot import PodView
from gearshift.policy.startup import MOST_KEPT, expected_seconds, startup_status
from tests.unit.policy.build import LONG_AGO, NOW, pod, seasoned, snapshot, starting

KNOWN = {"a": Startup("new", 50.0), "b": Startup("new", 70.0), "c": Startup("new", 90.0), "d": Startup("old", 500.0)}


def born(seconds_ago: float, took: float, epoch: int = 0) -> PodView:
    """A pod that was made some seconds ago and took some to serve."""
    return replace(pod(7), created_at=NOW - seconds_ago, since=NOW - seconds_ago + took, epoch=epoch)


def test_a_pod_that_serves_for_the_first_time_is_measured_once() -> None:
    memory = fold(seasoned(), snapshot([starting(7)]))
    assert memory.startups == {}
    memory = fold(memory, snapshot([born(100, 80)]))
    assert memory.startups == {"uid-7": Startup("new", 80.0)}
    again = fold(memory, snapshot([born(100, 95)], at=NOW + 5))
    assert again.startups == memory.startups


@pytest.mark.parametrize(
    ("memory", "view", "counts"),
    [
        (seasoned(), born(100, 80), True),
        (seasoned(), born(100, 80, epoch=1), False),
        (seasoned(), born(100, 0), False),
        (Memory(NOW - 50), born(100, 80), True),  # older than the watch, but better than nothing
        (Memory(NOW - 50, startups=KNOWN), born(100, 80), False),
        (Memory(NOW - 150, startups=KNOWN), born(100, 80), True),
    ],
)
def test_what_counts_as_a_startup(memory: Memory, view: PodView, counts: bool) -> None:
    assert ("uid-7" in fold(memory, snapshot([view])).startups) == counts


def test_the_median_of_the_revision_is_expected_else_that_of_all() -> None:
    memory = seasoned(startups=KNOWN)
    assert expected_seconds(memory, "new") == 70
    assert expected_seconds(memory, "old") == 500
    assert expected_seconds(memory, "newer") == 80
    assert expected_seconds(seasoned(), "new") is None


def test_status_tells_those_of_the_present_revision() -> None:
    memory = seasoned(startups=KNOWN)
    assert startup_status(memory, "new") == StartupStatus(seconds=70, pods=3, revision="new")
    assert startup_status(memory, "newer") is None


def test_a_restart_keeps_the_median() -> None:
    told = StartupStatus(seconds=70, pods=3, revision="new")
    memory = rebuild(LONG_AGO, InferenceServiceStatus(startup=told))
    assert startup_status(memory, "new") == told


def test_the_oldest_are_forgotten() -> None:
    many = {f"u{n}": Startup("new", float(n)) for n in range(MOST_KEPT)}
    memory = fold(seasoned(startups=many), snapshot([born(100, 80)]))
    assert len(memory.startups) == MOST_KEPT
    assert ("u0" in memory.startups, "uid-7" in memory.startups) == (False, True)
