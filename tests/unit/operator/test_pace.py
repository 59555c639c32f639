# SPDX-License-Identifier: Apache-2.0
"""How soon a service is looked at again."""

import asyncio
from dataclasses import replace

import pytest

from gearshift.api.vocabulary import PodPhase
from gearshift.operator.pace import Pace, settling
from tests.unit.policy.build import NOW, pod, snapshot


def test_failures_slow_down_to_a_bound_and_success_forgets_them() -> None:
    pace = Pace(5.0)
    pauses = [pace.failed() for _ in range(40)]
    assert pauses[0] <= 0.65
    assert all(15 * 0.7 <= pause <= 15 * 1.3 for pause in pauses[6:])
    pace.succeeded()
    assert pace.failed() <= 0.65


def test_a_change_ends_a_quiet_pause_but_not_one_after_a_failure() -> None:
    async def rests(pace: Pace) -> bool:
        wake = asyncio.Event()
        wake.set()
        try:
            async with asyncio.timeout(0.3):
                await pace.rest(wake, 3600.0)
        except TimeoutError:
            return False
        return True

    assert asyncio.run(rests(Pace(5.0)))
    failed = Pace(5.0)
    failed.failed()
    assert not asyncio.run(rests(failed))


def test_a_quiet_pause_is_as_long_as_a_round_of_all_services_must_be() -> None:
    assert 4.5 <= Pace(5.0).quiet(2.0) <= 5.5
    assert 18.0 <= Pace(5.0).quiet(20.0) <= 22.0


@pytest.mark.parametrize(
    ("took", "rested", "waits"),
    [(0.01, 0.0, 0.1), (0.8, 0.0, 0.8), (0.8, 0.5, 0.3), (0.8, 60.0, 0.1), (30.0, 0.0, 2.0)],
)
def test_a_change_waits_only_while_the_last_look_has_not_been_over_for_as_long_as_it_took(
    took: float, rested: float, waits: float
) -> None:
    now = 100.0
    pace = Pace(5.0, clock=lambda: now)
    assert pace.gathering() == 0.1
    pace.looked(now - took)
    now += rested
    assert pace.gathering() == pytest.approx(waits)


@pytest.mark.parametrize(("since", "soon"), [(NOW - 5, True), (NOW - 600, False)])
def test_a_ready_pod_that_does_not_serve_is_watched_closely_for_a_while_only(since: float, soon: bool) -> None:
    assert settling(snapshot((pod(0, phase=PodPhase.UNKNOWN, since=since),))) is soon
    assert not settling(snapshot((pod(0), replace(pod(1), ready=False, since=since))))
