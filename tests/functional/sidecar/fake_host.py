# SPDX-License-Identifier: Apache-2.0
"""An engine host after `gearshift.api.host` whose processes are `FakeEngine` objects of this process."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from gearshift.api.host import HostEvent, ProcessList, ProcessSpec, ProcessStatus
from gearshift.api.vocabulary import Layout, Role
from tests.functional.sidecar.fake_engine import Conduct, FakeEngine

LAYOUTS_OF = {"sim": list(Layout), "tp": [Layout.TP], "dp": [Layout.DP]}


def option(argv: Sequence[str], name: str, default: str) -> str:
    return argv[argv.index(name) + 1] if name in argv else default


class FakeHost:
    """Starts and loses fake engines as it is told."""

    def __init__(self, socket: Path) -> None:
        self.engines: dict[str, FakeEngine] = {}
        self.conducts: dict[str, Conduct] = {}
        self.statuses: dict[str, ProcessStatus] = {}
        self.starts: list[str] = []
        self.shutdowns: list[float] = []
        self.terminating = False
        self.refuse_signals = False
        self.refused = 0  # signals
        self._socket = socket
        self._queues: set[asyncio.Queue[HostEvent]] = set()
        self._runner: web.AppRunner | None = None
        self._pid = 100

    def conduct(self, name: str) -> Conduct:
        return self.conducts.setdefault(name, Conduct())

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/v1/processes", self._list)
        app.router.add_put("/v1/processes/{name}", self._put)
        app.router.add_post("/v1/processes/{name}/signal", self._signal)
        app.router.add_get("/v1/events", self._events)
        app.router.add_post("/v1/shutdown", self._shutdown)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01, handler_cancellation=True)
        await self._runner.setup()
        await web.UnixSite(self._runner, str(self._socket)).start()

    async def stop(self) -> None:
        """The engine container is gone."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self._socket.unlink(missing_ok=True)
        for engine in self.engines.values():
            await engine.stop()
        self.engines, self.statuses = {}, {}

    async def kill(self, name: str, code: int = -9) -> None:
        """The process ends."""
        await self.engines.pop(name).stop()
        status = self.statuses[name].model_copy(
            update={"state": "Exited", "exit_code": code, "log_tail": [f"{name} says goodbye"]}
        )
        self.statuses[name] = status
        self._tell(HostEvent(kind="Exited", process=status))

    def terminate(self, grace_seconds: float) -> None:
        """SIGTERM to the engine container."""
        self.terminating = True
        self._tell(HostEvent(kind="Terminating", grace_seconds=grace_seconds))

    def _tell(self, event: HostEvent) -> None:
        for queue in self._queues:
            queue.put_nowait(event)

    async def _list(self, _request: web.Request) -> web.Response:
        answer = ProcessList(processes=list(self.statuses.values()), terminating=self.terminating)
        return web.json_response(answer.dump())

    async def _put(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        spec = ProcessSpec.model_validate(await request.json())
        self.starts.append(name)
        argv = spec.argv
        first = LAYOUTS_OF[name][0].value
        layout, role = Layout(option(argv, "--layout", first)), Role(option(argv, "--role", "Unified"))
        engine = FakeEngine(LAYOUTS_OF[name], layout, role, self.conduct(name))
        self._pid += 1
        status = ProcessStatus(name=name, pid=self._pid, state="Running", started_at=time.time(), spec=spec)
        self.engines[name], self.statuses[name] = engine, status
        if self.conduct(name).dies_at_start:
            await self.kill(name, 1)
        else:
            await engine.start(int(option(argv, "--port", "0")))
            self._tell(HostEvent(kind="Started", process=status))
        return web.json_response(status.dump())

    async def _signal(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if self.refuse_signals or name not in self.statuses:
            self.refused += 1
            return web.Response(status=404, text=f"no process {name!r} was started")
        if name in self.engines:
            await self.kill(name)
        return web.json_response(self.statuses[name].dump())

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[HostEvent] = asyncio.Queue()
        self._queues.add(queue)
        try:
            await self._write(response, HostEvent(kind="Hello"))
            while True:
                try:
                    async with asyncio.timeout(0.5):
                        event = await queue.get()
                except TimeoutError:
                    event = HostEvent(kind="Beat")
                await self._write(response, event)
        except ConnectionError:
            return response
        finally:
            self._queues.discard(queue)

    @staticmethod
    async def _write(response: web.StreamResponse, event: HostEvent) -> None:
        await response.write(event.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n")

    async def _shutdown(self, request: web.Request) -> web.Response:
        self.shutdowns.append((await request.json())["graceSeconds"])
        return web.Response(status=202)
