# SPDX-License-Identifier: Apache-2.0
"""Worlds and routers that are always taken down."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.functional.sidecar.world import FakeRouter, World

MakeWorld = Callable[..., World]
StartRouter = Callable[..., Awaitable[FakeRouter]]


@pytest_asyncio.fixture
async def make_world() -> AsyncIterator[MakeWorld]:
    """Makes a `World` that is not started yet; keywords change its pod's configuration."""
    made: list[World] = []
    with tempfile.TemporaryDirectory() as folder:

        def make(**config: Any) -> World:
            made.append(World(Path(folder), **config))
            return made[-1]

        yield make
        for world in made:
            await world.stop()


@pytest_asyncio.fixture
async def world(make_world: MakeWorld) -> World:
    """A pod that serves, with one Simulated engine."""
    return await make_world().start()


@pytest_asyncio.fixture
async def start_router() -> AsyncIterator[StartRouter]:
    """Starts routers of a world."""
    started: list[FakeRouter] = []

    async def start(world: World, name: str = "router-1") -> FakeRouter:
        router = FakeRouter(world, name)
        started.append(router)
        return await router.start()

    yield start
    for router in started:
        await router.stop()
