# SPDX-License-Identifier: Apache-2.0
"""A simulated engine as a process of its own, and what the tests ask of it."""

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

REPOSITORY = Path(__file__).parents[3]
DEADLINE_SECONDS = 120.0
_SERVING = re.compile(r"serving .* on port (\d+)")


class SimProcess:
    """``python -m gearshift.sim.engine`` on a free loopback port."""

    def __init__(self, *flags: str, host: str = "127.0.0.1") -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed by stop()
        argv = [sys.executable, "-m", "gearshift.sim.engine", "--host", host, "--port", "0", "--model", "m"]
        argv += ["--profile", "tiny", *flags]
        path = os.pathsep.join([str(REPOSITORY / "core"), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(argv, stderr=self._log, env={**os.environ, "PYTHONPATH": path})

    @property
    def log(self) -> str:
        """Standard error so far."""
        self._log.seek(0)
        return self._log.read().decode()

    async def port(self) -> int:
        """The API's port, once it listens."""
        await eventually(lambda: _SERVING.search(self.log) is not None or self.process.poll() is not None)
        found = _SERVING.search(self.log)
        assert found is not None, self.log
        return int(found[1])

    def stop(self) -> None:
        """Kill it and reap it."""
        self.process.kill()
        self.process.wait()
        self._log.close()


class Engine:
    """A client of a running simulated engine."""

    def __init__(self, process: SimProcess, port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self.session: aiohttp.ClientSession
        self._owns_process = False

    @classmethod
    async def start(cls, *flags: str, host: str = "127.0.0.1") -> Self:
        """Start a process of the engine's own, ended with it, and wait until it listens."""
        process = SimProcess(*flags, host=host)
        try:
            engine = cls(process, await process.port())
        except BaseException:
            process.stop()
            raise
        engine._owns_process = True
        return engine

    async def __aenter__(self) -> Self:
        self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=DEADLINE_SECONDS))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.close()
        if self._owns_process:
            self.process.stop()

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON (or text) of a GET."""
        async with self.session.get(self.url + path) as response:
            return response.status, _decoded(await response.text())

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON (or text) of a POST."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(self.url + path, data=io.BytesIO(data)) as response:
            return response.status, _decoded(await response.text())

    async def complete(self, prompt: Any, **fields: Any) -> dict[str, Any]:
        """Answer of a completion that must succeed."""
        status, answer = await self.post("/v1/completions", {"model": "m", "prompt": prompt, **fields})
        assert status == 200, answer
        assert isinstance(answer, dict)
        return answer

    async def text(self, prompt: Any, **fields: Any) -> str:
        """Text of a completion that must succeed."""
        return str((await self.complete(prompt, **fields))["choices"][0]["text"])

    async def state(self) -> dict[str, Any]:
        """What the engine says of itself."""
        status, answer = await self.get("/gearshift/v1/engine")
        assert status == 200, answer
        return dict(answer)

    async def samples(self) -> dict[str, float]:
        """Prometheus samples by series."""
        _, text = await self.get("/metrics")
        rows = [line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("vllm:")]
        return {series: float(value) for series, value in rows}


async def eventually(condition: Callable[[], bool | Awaitable[bool]], seconds: float = DEADLINE_SECONDS) -> None:
    """Return as soon as ``condition`` holds; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        held = condition()
        if held if isinstance(held, bool) else await held:
            return
        assert time.monotonic() < deadline, "the condition did not come to hold"
        await asyncio.sleep(0.01)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
