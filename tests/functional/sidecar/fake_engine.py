# SPDX-License-Identifier: Apache-2.0
"""An engine with the routes of `gearshift.api.engine` and vLLM's completions, that can be told to misbehave."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from gearshift.api.engine import EngineError, EngineState, LayoutRequest, RoleKnobs, RoleRequest
from gearshift.api.vocabulary import Layout, Role


@dataclass
class Conduct:
    """How an engine behaves; shared by all lives of its process."""

    lies: bool = False  # says yes to a switch and does nothing
    failing: set[str] = field(default_factory=set)  # routes that answer 500
    held: set[str] = field(default_factory=set)  # routes that do not answer until released
    tokens: int = 1  # in an answer to a completion
    transfers: bool = True  # a prefill carries its transfer parameters
    lost_ranks: int = 0
    running: int = 0
    waiting: int = 0
    kv_held: int = 0
    dies_at_start: bool = False
    asked: int = 0  # times that its state was read
    unserved: set[Layout] = field(default_factory=set)
    released: asyncio.Event = field(default_factory=asyncio.Event)


class FakeEngine:
    """One process of an engine, alive from `start` to `stop`."""

    def __init__(self, layouts: list[Layout], layout: Layout, role: Role, conduct: Conduct) -> None:
        self.layouts = layouts
        self.layout = layout
        self.role = role
        self.epoch = 0
        self.paused = False
        self.knobs = RoleKnobs(max_num_seqs=256)
        self.conduct = conduct
        self.calls: list[str] = []
        self._runner: web.AppRunner | None = None

    def state(self) -> EngineState:
        return EngineState(
            layout=self.layout,
            layouts=[layout for layout in self.layouts if layout not in self.conduct.unserved],
            role=self.role,
            epoch=self.epoch,
            paused=self.paused,
            ranks=8 - self.conduct.lost_ranks,
            world_size=8,
            knobs=self.knobs,
            running=self.conduct.running,
            waiting=self.conduct.waiting,
            details={"engineId": "fake", "kvHeld": str(self.conduct.kv_held)},
        )

    async def start(self, port: int) -> None:
        app = web.Application()
        app.router.add_get("/gearshift/v1/engine", self._engine)
        app.router.add_post("/gearshift/v1/pause", self._pause)
        app.router.add_post("/gearshift/v1/resume", self._resume)
        app.router.add_post("/gearshift/v1/layout", self._layout)
        app.router.add_post("/gearshift/v1/role", self._role)
        app.router.add_post("/v1/completions", self._complete)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _act(self, request: web.Request) -> web.Response | None:
        route = request.path.rpartition("/")[2]
        if request.method == "POST":
            self.calls.append(route)
        if route in self.conduct.held:
            await self.conduct.released.wait()
        if route in self.conduct.failing:
            return web.json_response(EngineError(reason="Broken", message=f"{route} fails").dump(), status=500)
        return None

    def _answer(self) -> web.Response:
        return web.json_response(self.state().dump())

    async def _engine(self, request: web.Request) -> web.Response:
        self.conduct.asked += 1
        return await self._act(request) or self._answer()

    async def _pause(self, request: web.Request) -> web.Response:
        failure = await self._act(request)
        self.paused = failure is None or self.paused
        return failure or self._answer()

    async def _resume(self, request: web.Request) -> web.Response:
        failure = await self._act(request)
        self.paused = failure is not None and self.paused
        return failure or self._answer()

    async def _layout(self, request: web.Request) -> web.Response:
        order = LayoutRequest.model_validate(await request.json())
        failure = await self._act(request)
        if failure is None and not self.conduct.lies:
            self.layout, self.epoch = order.layout, order.epoch
        return failure or self._answer()

    async def _role(self, request: web.Request) -> web.Response:
        order = RoleRequest.model_validate(await request.json())
        failure = await self._act(request)
        if failure is None and not self.conduct.lies:
            self.role, self.epoch = order.role, order.epoch
            self.knobs = order.knobs if order.knobs.max_num_seqs else RoleKnobs(max_num_seqs=256)
        return failure or self._answer()

    async def _complete(self, request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        failure = await self._act(request)
        if failure is not None or self.paused:
            return failure or web.Response(status=503, text="paused")
        answer: dict[str, Any] = {"choices": [{"text": "x"}], "usage": {"completion_tokens": self.conduct.tokens}}
        asked = body.get("kv_transfer_params")
        if asked is not None and asked.get("do_remote_decode") and self.conduct.transfers:
            answer["kv_transfer_params"] = {"remote_engine_id": "fake"}
        return web.json_response(answer)
