# SPDX-License-Identifier: Apache-2.0
"""Which routers a drain waits for, and for what."""

import asyncio

import pytest

from gearshift.api.wire import Ack
from gearshift.sidecar.routers import Routers, blockers, unconfirmed


def ack(router: str, sequence: int, in_flight: int = 0) -> Ack:
    return Ack(router=router, sequence=sequence, in_flight=in_flight)


def test_a_router_with_a_stream_blocks_until_it_confirms_and_owes_nothing() -> None:
    routers = Routers(linger_seconds=5.0)
    routers.opened("r1", 0.0)
    assert blockers(routers.known(1000.0), 7) == ["router r1 has not confirmed state 7"]
    routers.acked(ack("r1", 7, 2), 1000.0)
    assert blockers(routers.known(1000.0), 7) == ["router r1 waits for 2 requests"]
    routers.acked(ack("r1", 8, 0), 1000.0)
    assert blockers(routers.known(1000.0), 7) == []


def test_an_older_word_that_arrives_late_counts_for_nothing() -> None:
    routers = Routers(linger_seconds=5.0)
    routers.acked(ack("r1", 8, 0), 0.0)
    routers.acked(ack("r1", 7, 3), 0.0)
    assert [(view.sequence, view.in_flight) for view in routers.known(0.0)] == [(8, 0)]


def test_a_router_whose_stream_is_gone_blocks_only_a_few_seconds() -> None:
    routers = Routers(linger_seconds=5.0)
    routers.opened("r1", 0.0)
    routers.closed("r1", 100.0)
    assert unconfirmed(routers.known(104.9), 7) == ["r1"]
    assert routers.known(105.1) == []


def test_a_router_that_opens_its_stream_again_before_the_old_one_ends_still_counts() -> None:
    routers = Routers(linger_seconds=5.0)
    routers.opened("r1", 0.0)
    routers.opened("r1", 1.0)
    routers.closed("r1", 2.0)
    assert [view.name for view in routers.known(1000.0)] == ["r1"]
    assert routers.connected() == 1


def test_a_router_without_a_stream_counts_while_its_word_is_fresh() -> None:
    routers = Routers(linger_seconds=5.0)
    routers.acked(ack("r1", 3), 10.0)
    assert unconfirmed(routers.known(12.0), 7) == ["r1"]
    assert routers.known(16.0) == []


async def test_waiting_ends_with_the_next_word() -> None:
    routers = Routers(linger_seconds=5.0)
    waiting = asyncio.ensure_future(routers.wait_change(60.0))
    await asyncio.sleep(0)
    routers.acked(ack("r1", 1), 0.0)
    async with asyncio.timeout(5):
        await waiting


async def test_waiting_ends_without_a_word_after_its_time() -> None:
    async with asyncio.timeout(5):
        await Routers(linger_seconds=5.0).wait_change(0.001)


@pytest.mark.parametrize("sequence", [0, 5])
def test_no_router_no_blocker(sequence: int) -> None:
    assert blockers([], sequence) == []
