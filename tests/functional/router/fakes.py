# SPDX-License-Identifier: Apache-2.0
"""A pod made of two in-process HTTP servers (sidecar and engine), and a router around such pods."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from aiohttp import web

from gearshift.api.routerconfig import RouterConfig
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.api.wire import Load, PodState
from gearshift.router.endpoints import Endpoint, Publish
from gearshift.router.service import Router
from gearshift.router.tokens import TokenFile

TOKEN = "s3cret"
MODEL = "tiny"
Engine = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for a condition, at most ``seconds``."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)


async def serve(routes: Sequence[web.RouteDef], port: int = 0) -> tuple[web.AppRunner, int]:
    """Serve routes on a loopback port."""
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.add_routes(routes)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    return runner, int(runner.addresses[0][1])


async def whole_answer(_request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """Engine that answers at once, with the number of prompt characters."""
    return web.json_response({"choices": [{"text": str(len(str(body.get("prompt"))))}]})


class FakePod:
    """A pod whose state, engine behaviour and faults a test sets."""

    def __init__(self, name: str, engine: Engine = whole_answer, **state: Any) -> None:
        self.name = name
        self.engine = engine
        self.sent: list[dict[str, Any]] = []  # bodies that the engine got
        self.headers: list[dict[str, str]] = []
        self.acks: list[dict[str, Any]] = []
        self.cancelled = 0  # requests whose client left
        self.streams = 0  # state streams open now
        self.opened = 0  # state streams ever opened
        self.refuse_acks = False
        self.unsure_of: set[str] = set()  # tokens that its sidecar can't check now
        self.silent = False  # the state stream says nothing
        self.state = PodState(
            pod=name,
            uid=f"uid-{name}",
            sequence=1,
            epoch=0,
            phase=PodPhase.SERVING,
            admitting=True,
            role=Role.UNIFIED,
            layout=Layout.TP,
            layouts=[Layout.TP],
            engine_port=1,
            model=MODEL,
        ).model_copy(update=state)
        self._changed = asyncio.Event()

    async def start(self) -> None:
        """Listen with both servers."""
        await self.start_engine(0)
        self.state.engine_port = int(self.engine_runner.addresses[0][1])
        self.sidecar_runner, self.control_port = await serve(self._control())

    async def stop(self) -> None:
        """Stop both."""
        await self.stop_sidecar()
        await self.engine_runner.cleanup()

    async def start_engine(self, port: int) -> None:
        """The engine listens."""
        completions = [web.post(path, self._complete) for path in ("/v1/completions", "/v1/chat/completions")]
        self.engine_runner, _ = await serve(completions, port)

    async def stop_sidecar(self) -> None:
        """The sidecar is gone; the engine goes on."""
        await self.sidecar_runner.cleanup()

    async def start_sidecar(self) -> None:
        """The sidecar is back on its port."""
        self.sidecar_runner, _ = await serve(self._control(), self.control_port)

    @property
    def endpoint(self) -> Endpoint:
        """What an endpoint source says of it."""
        return Endpoint(self.name, f"uid-{self.name}", "127.0.0.1", control_port=self.control_port)

    def say(self, **update: Any) -> None:
        """Change the state and stream it; the sequence grows unless only load changes."""
        grown = {} if set(update) <= {"load"} else {"sequence": self.state.sequence + 1}
        self.state = self.state.model_copy(update={**grown, **update})
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def say_load(self, running: int, waiting: int = 0) -> None:
        """Report load."""
        self.say(load=Load(running=running, waiting=waiting))

    def acknowledged(self, in_flight: int) -> bool:
        """Whether the newest acknowledgement is of the present sequence and says ``in_flight``."""
        return bool(self.acks) and (self.acks[-1]["sequence"], self.acks[-1]["inFlight"]) == (
            self.state.sequence,
            in_flight,
        )

    def _control(self) -> list[web.RouteDef]:
        return [web.get("/v1/state/stream", self._stream), web.post("/v1/acks", self._ack)]

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        self._authenticate(request)
        response = web.StreamResponse()
        await response.prepare(request)
        assert request.query["router"], "a drain waits for the routers that named themselves"
        self.streams += 1
        self.opened += 1
        try:
            while True:
                changed = self._changed
                if not self.silent:
                    await response.write(json.dumps(self.state.dump()).encode() + b"\n")
                try:
                    async with asyncio.timeout(0.5):
                        await changed.wait()
                except TimeoutError:
                    continue
        finally:
            self.streams -= 1

    async def _ack(self, request: web.Request) -> web.StreamResponse:
        self._authenticate(request)
        if self.refuse_acks:
            raise web.HTTPServiceUnavailable
        self.acks.append(await request.json())
        return web.Response(status=204)

    def _authenticate(self, request: web.Request) -> None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token in self.unsure_of:
            raise web.HTTPServiceUnavailable
        if token != TOKEN:
            raise web.HTTPUnauthorized

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.sent.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        try:
            return await self.engine(request, body)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


class Listed:
    """An endpoint source that a test tells what to publish."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = endpoints
        self._publish: Publish | None = None

    async def run(self, publish: Publish) -> None:
        """Publish what is known and wait."""
        self._publish = publish
        publish(self._endpoints)
        await asyncio.Event().wait()

    def publish(self, endpoints: Sequence[Endpoint]) -> None:
        """Publish a new list."""
        assert self._publish is not None
        self._publish(endpoints)


class House:
    """A router and its pods."""

    def __init__(self, pods: Sequence[FakePod], token: Path, **config: Any) -> None:
        self.pods = list(pods)
        values = {"namespace": "apps", "service": "chat", "serviceUid": "u1", "model": MODEL, "connectTimeout": "500ms"}
        self.config = RouterConfig.model_validate({**values, **config})
        token.write_text(TOKEN + "\n")
        self._token = token

    async def start(self) -> None:
        """Start all, and wait until the router has heard every pod."""
        for pod in self.pods:
            await pod.start()
        self.source = Listed([pod.endpoint for pod in self.pods])
        self.router = Router(self.config, self.source, TokenFile(self._token), "router-1", Random(7))
        await self.router.start("127.0.0.1", 0, 0)
        await until(lambda: all(pod.acks for pod in self.pods))

    async def stop(self) -> None:
        """Stop all."""
        await self.router.stop(0.0, 0.0)
        for pod in self.pods:
            await pod.stop()

    @property
    def url(self) -> str:
        """Address of the OpenAI API."""
        return f"http://127.0.0.1:{self.router.port}"
