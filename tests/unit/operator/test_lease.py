# SPDX-License-Identifier: Apache-2.0
"""Election by hand: a fake clock, and a Lease object that a test can reach into."""

import copy
from typing import Any, cast

import pytest

from gearshift.operator.errors import Conflict, NotFound, NotLeader, Unavailable
from gearshift.operator.kube import Kube
from gearshift.operator.lease import Lease, LeaseLost


class Store:
    """One Lease object with optimistic locking, as the API server keeps it."""

    def __init__(self) -> None:
        self.body: dict[str, Any] | None = None
        self.version = 0
        self.down = False

    async def get(self, *_: object) -> dict[str, Any]:
        """Read it."""
        if self.down:
            raise Unavailable("GET", "down")
        if self.body is None:
            raise NotFound("GET", "none", 404)
        return copy.deepcopy(self.body)

    async def write_lease(self, _: object, body: dict[str, Any]) -> dict[str, Any]:
        """Create or replace it."""
        if self.down:
            raise Unavailable("PUT", "down")
        if self.body is not None and body["metadata"].get("resourceVersion") != str(self.version):
            raise Conflict("PUT", "changed", 409)
        self.version += 1
        self.body = {**copy.deepcopy(body), "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return copy.deepcopy(self.body)


class World:
    """Candidates that share a store and a clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.store = Store()

    def candidate(self, name: str) -> Lease:
        """One process."""
        return Lease("ns", "lease", name, clock=lambda: self.now)

    async def attempt(self, one: Lease) -> None:
        """One step of its loop."""
        await one._attempt(cast("Kube", self.store))


async def test_the_first_leads_and_the_second_waits() -> None:
    world = World()
    first, second = world.candidate("a"), world.candidate("b")
    await world.attempt(first)
    await world.attempt(second)
    assert (first.leading, second.leading, first.token) == (True, False, 1)
    with pytest.raises(NotLeader, match="b does not hold"):
        second.check()


async def test_without_renewal_it_stops_acting_before_another_may_begin() -> None:
    world = World()
    first, second = world.candidate("a"), world.candidate("b")
    await world.attempt(first)
    await world.attempt(second)
    world.now += 10
    assert not first.leading
    await world.attempt(second)
    assert not second.leading
    world.now += 5
    await world.attempt(second)
    assert (second.leading, second.token) == (True, 2)
    with pytest.raises(LeaseLost, match="held by b"):
        await world.attempt(first)


async def test_after_an_outage_it_goes_on_with_its_token_when_nobody_came_between() -> None:
    world = World()
    first = world.candidate("a")
    await world.attempt(first)
    world.store.down = True
    world.now += 300
    with pytest.raises(Unavailable):
        await world.attempt(first)
    assert not first.leading
    world.store.down = False
    await world.attempt(first)
    assert (first.leading, first.token) == (True, 1)


async def test_a_released_lease_is_taken_without_waiting() -> None:
    world = World()
    first, second = world.candidate("a"), world.candidate("b")
    await world.attempt(first)
    await first.release(cast("Kube", world.store))
    assert not first.leading
    await world.attempt(second)
    assert (second.leading, second.token) == (True, 2)


async def test_the_token_never_shrinks() -> None:
    world = World()
    first = world.candidate("a")
    for _ in range(3):
        await world.attempt(first)
        await first.release(cast("Kube", world.store))
    await world.attempt(first)
    before = first.token
    world.store.body = None
    await world.attempt(first)
    assert (first.leading, first.token) == (True, before)
    first.raise_token(40)
    await world.attempt(first)
    assert first.token == 41


async def test_of_two_that_find_it_expired_one_wins() -> None:
    world = World()
    gone, first, second = (world.candidate(name) for name in "xab")
    await world.attempt(gone)
    for one in (first, second):
        await world.attempt(one)
    world.now += 16
    body = copy.deepcopy(world.store.body)
    await world.attempt(first)
    world.store.get = _stale(body)  # type: ignore[method-assign]
    with pytest.raises(Conflict):
        await world.attempt(second)
    assert (first.leading, second.leading) == (True, False)


def _stale(body: Any) -> Any:
    async def get(*_: object) -> Any:
        return copy.deepcopy(body)

    return get
