# SPDX-License-Identifier: Apache-2.0
"""What the tests of the engine host speak with: the process under test, a client and an event stream."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

ROOT = Path(__file__).parents[3]
DEADLINE_SECONDS = 120.0


class HostProcess:
    """The host under test."""

    def __init__(self, folder: Path, grace_seconds: float) -> None:
        self.socket = folder / "host.sock"
        self.log = folder / "log"
        path = os.pathsep.join(str(ROOT / part) for part in ("core", "sidecar"))
        command = [sys.executable, "-m", "gearshift.engine.host", "--socket", str(self.socket)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--grace-seconds", str(grace_seconds)],
                env={**os.environ, "PYTHONPATH": path},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def text(self) -> str:
        return self.log.read_text()

    def terminate(self) -> float:
        self.process.send_signal(signal.SIGTERM)
        return time.monotonic()

    async def exit_code(self) -> int:
        return await asyncio.to_thread(self.process.wait, DEADLINE_SECONDS)


class Client:
    """What a sidecar would say."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        async with self.session.request(method, f"http://host{path}", json=body) as response:
            text = await response.text()
            return response.status, json.loads(text) if text else {}

    async def run(self, name: str, code: str, **env: str) -> dict[str, Any]:
        status, answer = await self.call("PUT", f"/v1/processes/{name}", {"argv": ["python", "-c", code], "env": env})
        assert status == 200, answer
        return answer

    async def process(self, name: str) -> dict[str, Any]:
        _, answer = await self.call("GET", "/v1/processes")
        return next(one for one in answer["processes"] if one["name"] == name)

    async def until(self, condition: Callable[[], Awaitable[Any]]) -> Any:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (found := await condition()) in {None, False}:
            if time.monotonic() > deadline:
                pytest.fail(f"condition not met in time; the host says {await self.call('GET', '/v1/processes')}")
            await asyncio.sleep(0.02)
        return found

    async def printed(self, name: str, prefix: str) -> str:
        """The rest of the first kept line of ``name`` that begins with ``prefix``."""

        async def look() -> str | None:
            lines = (await self.process(name))["logTail"]
            return next((line.removeprefix(prefix) for line in lines if line.startswith(prefix)), None)

        found: str = await self.until(look)
        return found


class Events:
    """An open event stream."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self, *kinds: str) -> dict[str, Any]:
        """The next event of one of ``kinds``; others are passed over."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                line = await self.response.content.readline()
                assert line, f"the stream ended before {kinds}"
                event: dict[str, Any] = json.loads(line)
                if event["kind"] in kinds:
                    return event


def alive(pid: int) -> bool:
    """True unless the process is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in {"Z", "X"}


def known(pid: int) -> bool:
    """True while the process table holds the pid, be it of a zombie."""
    return Path(f"/proc/{pid}").exists()
