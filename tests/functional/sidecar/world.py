# SPDX-License-Identifier: Apache-2.0
"""A pod's surroundings in one process: a fake host with fake engines, a fake API server, and the real sidecar."""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gearshift.api.podconfig import PodConfig
from gearshift.api.wire import Ack, PodState, TransitionStatus
from gearshift.sidecar.service import serve
from gearshift.sidecar.settings import ApiServer, PodFacts, Ports, Settings, Timings
from tests.functional.sidecar.fake_engine import Conduct, FakeEngine
from tests.functional.sidecar.fake_host import FakeHost
from tests.functional.sidecar.fake_kube import OPERATOR, ROUTER, FakeKube, token_of

DEADLINE_SECONDS = 120.0
TIMINGS = Timings(
    engine_poll=0.01,
    idle_poll=0.02,
    start_poll=0.01,
    drain_poll=0.005,
    engine_call=5.0,
    switch=5.0,
    probe=5.0,
    confirm=0.2,
    backoff_first=0.01,
    backoff_most=0.05,
    router_linger=0.3,
    host_retry=0.02,
    beat=0.2,
    load_interval=0.02,
    shutdown_grace=1.0,
)


def free_ports(count: int) -> int:
    """First of ``count`` successive free ports."""
    for _ in range(100):
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            first: int = probe.getsockname()[1]
        try:
            for port in range(first, first + count):
                with closing(socket.socket()) as probe:
                    probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            continue
        return first
    raise RuntimeError("no successive free ports")


class World:
    """One pod."""

    def __init__(self, folder: Path, timings: Timings = TIMINGS, **config: Any) -> None:
        first = free_ports(4)
        own = folder / "own-token"
        own.write_text("own-token\n")
        self.kube = FakeKube()
        self.host = FakeHost(folder / "host.sock")
        self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=DEADLINE_SECONDS))
        self.folder = folder
        base = {
            "namespace": "ns",
            "service": "demo",
            "model": "tiny",
            "model_path": "/models/tiny",
            "engine": "Simulated",
            "device": "CPU",
            "accelerators": 8,
            "layouts": ["TP", "SP", "DP"],
            "initial_layout": "TP",
            "initial_role": "Unified",
            "disaggregated": False,
            "operator_account": OPERATOR,
            "router_account": ROUTER,
        }
        self.settings = Settings(
            config=PodConfig.model_validate({**base, **config}),
            pod=PodFacts(name="demo-0", uid="uid-0", ip="127.0.0.1", namespace="ns"),
            api_server=ApiServer("", own, None),
            ports=Ports(engine=first, control=first + 2, metrics=first + 3),
            timings=timings,
            host_socket=folder / "host.sock",
            state_file=folder / "state.json",
            bind="127.0.0.1",
        )
        self._serving: asyncio.Task[None] | None = None
        self._tokens = {account: token_of(account) for account in (OPERATOR, ROUTER)}

    async def start(self, *, until: str = "Serving") -> "World":
        await self.kube.start()
        self.settings = replace(self.settings, api_server=replace(self.settings.api_server, url=self.kube.url))
        await self.host.start()
        await self.start_sidecar()
        await self.until_phase(until)
        return self

    async def stop(self) -> None:
        await self.stop_sidecar()
        await self.session.close()
        await self.host.stop()
        await self.kube.stop()

    async def start_sidecar(self) -> None:
        self._serving = asyncio.create_task(serve(self.settings))
        await self.until(self._reachable)

    async def stop_sidecar(self) -> None:
        """End it as SIGTERM does, or take over what ended it."""
        if self._serving is not None:
            self._serving.cancel()
            with suppress(asyncio.CancelledError):
                await self._serving
            self._serving = None

    def engine(self, name: str = "sim") -> FakeEngine:
        return self.host.engines[name]

    def conduct(self, name: str = "sim") -> Conduct:
        return self.host.conduct(name)

    async def call(
        self, method: str, path: str, body: Any = None, *, account: str = OPERATOR, token: str | None = None
    ) -> tuple[int, Any]:
        bearer = token if token is not None else self._tokens.get(account) or token_of(account)
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        url = f"http://127.0.0.1:{self.settings.ports.control}{path}"
        async with self.session.request(method, url, json=body, headers=headers) as response:
            text = await response.text()
            return response.status, json.loads(text) if text else None

    async def state(self) -> PodState:
        status, body = await self.call("GET", "/v1/state")
        assert status == 200, body
        return PodState.model_validate(body)

    async def order(self, to: str, *, kind: str = "Layout", id_: str = "t1", **changes: Any) -> tuple[int, Any]:
        epoch = (await self.state()).epoch
        body = {"id": id_, "kind": kind, "to": to, "expectedEpoch": epoch, "fencingToken": 1, **changes}
        return await self.call("POST", "/v1/transitions", body)

    async def ordered(self, to: str, *, kind: str = "Layout", id_: str = "t1", **changes: Any) -> TransitionStatus:
        """Order a transition and wait for its end."""
        status, body = await self.order(to, kind=kind, id_=id_, **changes)
        assert status == 202, body
        return await self.finished(id_)

    async def finished(self, id_: str = "t1") -> TransitionStatus:
        async def look() -> TransitionStatus | None:
            status, body = await self.call("GET", f"/v1/transitions/{id_}")
            assert status == 200, body
            found = TransitionStatus.model_validate(body)
            return found if found.result != "Running" else None

        found: TransitionStatus = await self.until(look)
        return found

    async def until_phase(self, phase: str) -> PodState:
        async def look() -> PodState | None:
            state = await self.state()
            return state if state.phase == phase else None

        found: PodState = await self.until(look)
        return found

    async def until(self, condition: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            if self._serving is not None and self._serving.done():
                await self._serving
            if time.monotonic() > deadline:
                pytest.fail(f"not in time: {condition}; engine calls {[e.calls for e in self.host.engines.values()]}")
            await asyncio.sleep(0.005)

    async def probe(self, path: str = "/readyz") -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.settings.ports.metrics}{path}"
        async with self.session.get(url) as response:
            return response.status, await response.text()

    async def _reachable(self) -> bool:
        try:
            return (await self.call("GET", "/v1/state"))[0] == 200
        except aiohttp.ClientConnectionError:
            return False


class FakeRouter:
    """Holds a state stream and confirms what it reads, but those phases that it is deaf to."""

    def __init__(self, world: World, name: str = "router-1") -> None:
        self.name = name
        self.states: list[PodState] = []
        self.in_flight = 0
        self.deaf_to: set[str] = set()  # phases that it does not confirm
        self._world = world
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> "FakeRouter":
        self._task = asyncio.create_task(self._follow())
        await self._world.until(lambda: self.states)
        return self

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def confirm(self, sequence: int | None = None) -> None:
        newest = self.states[-1].sequence if sequence is None else sequence
        ack = Ack(router=self.name, sequence=newest, in_flight=self.in_flight)
        status, body = await self._world.call("POST", "/v1/acks", ack.dump(), account=ROUTER)
        assert status == 204, body

    async def _follow(self) -> None:
        headers = {"Authorization": f"Bearer {token_of(ROUTER)}"}
        url = f"http://127.0.0.1:{self._world.settings.ports.control}/v1/state/stream"
        limit = aiohttp.ClientTimeout(total=None)
        async with self._world.session.get(
            url, params={"router": self.name}, headers=headers, timeout=limit
        ) as response:
            assert response.status == 200
            async for line in response.content:
                self.states.append(PodState.model_validate_json(line))
                if self.states[-1].phase not in self.deaf_to:
                    await self.confirm()
