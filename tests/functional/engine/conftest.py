# SPDX-License-Identifier: Apache-2.0
"""A real engine host as a process of its own, and a client for its socket."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.functional.engine.host_harness import DEADLINE_SECONDS, Client, Events, HostProcess


@pytest.fixture
def grace_seconds() -> float:
    return 20.0


@pytest.fixture
def host(grace_seconds: float) -> Iterator[HostProcess]:
    with tempfile.TemporaryDirectory() as folder:
        host = HostProcess(Path(folder), grace_seconds)
        try:
            yield host
        finally:
            host.process.kill()
            host.process.wait()


@pytest_asyncio.fixture
async def client(host: HostProcess) -> AsyncIterator[Client]:
    connector = aiohttp.UnixConnector(str(host.socket))
    timeout = aiohttp.ClientTimeout(total=DEADLINE_SECONDS)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        client = Client(session)

        async def ready() -> bool:
            try:
                return (await client.call("GET", "/v1/processes"))[0] == 200
            except aiohttp.ClientConnectorError:
                assert host.process.poll() is None, host.text()
                return False

        await client.until(ready)
        yield client


@pytest_asyncio.fixture
async def events(client: Client) -> AsyncIterator[Events]:
    timeout = aiohttp.ClientTimeout(total=None)
    async with client.session.get("http://host/v1/events", timeout=timeout) as response:
        yield Events(response)
