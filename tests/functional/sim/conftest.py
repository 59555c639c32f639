# SPDX-License-Identifier: Apache-2.0
"""Simulated engines for each test."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.functional.sim.sim_process import Engine, SimProcess


@pytest_asyncio.fixture
async def engine() -> AsyncIterator[Engine]:
    """One with 4 accelerators in TP, new for the test."""
    async with await Engine.start("--accelerators", "4") as engine:
        yield engine


@pytest.fixture(scope="module")
def shared_process() -> Iterator[SimProcess]:
    """A process for all tests of a module, which leave nothing behind in it."""
    process = SimProcess("--accelerators", "4")
    try:
        asyncio.run(process.port())
        yield process
    finally:
        process.stop()


@pytest_asyncio.fixture
async def shared_engine(shared_process: SimProcess) -> AsyncIterator[Engine]:
    """A client of the module's process."""
    async with Engine(shared_process, await shared_process.port()) as engine:
        yield engine
