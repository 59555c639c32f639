# SPDX-License-Identifier: Apache-2.0
"""A router with fake pods, started on demand and always stopped."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest_asyncio

from tests.functional.router.fakes import FakePod, House

StartHouse = Callable[..., Awaitable[House]]


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[StartHouse]:
    """Starts a `House`: ``await house(pod, ..., maxQueue=1)``."""
    houses: list[House] = []

    async def start(*pods: FakePod, **config: Any) -> House:
        made = House(pods, tmp_path / "token", **config)
        houses.append(made)
        await made.start()
        return made

    yield start
    for made in houses:
        await made.stop()


@pytest_asyncio.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    """A client without retries."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
        yield session
