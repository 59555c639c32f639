# SPDX-License-Identifier: Apache-2.0
"""The only engine of a service is killed under load: real router, sidecar, engine host and Simulated engine."""

import asyncio
import os
import signal
from pathlib import Path
from random import Random

from gearshift.api.routerconfig import RouterConfig
from gearshift.router.endpoints import Endpoint
from gearshift.router.service import Router
from gearshift.router.tokens import TokenFile
from gearshift.sidecar.host_client import HostClient
from tests.functional.router.fakes import Listed
from tests.functional.sidecar.fake_kube import ROUTER, token_of
from tests.functional.sidecar.test_real_parts import real_world
from tests.functional.sidecar.world import World

CLIENTS = 8
KILLS = 2  # one less than the attempts that a request has with engines that are lost


async def routed(world: World, token: Path) -> Router:
    """A router of the pod, which knows that it admits."""
    facts, ports = world.settings.pod, world.settings.ports
    source = Listed([Endpoint(facts.name, facts.uid, "127.0.0.1", control_port=ports.control)])
    config = RouterConfig(namespace="ns", service="demo", service_uid="u1", model="tiny")
    router = Router(config, source, TokenFile(token), "router-1", Random(7))
    await router.start("127.0.0.1", 0, 0)
    await world.until(lambda: router.fleet.serving("tiny"))
    return router


async def engine_pid(world: World) -> int:
    client = HostClient(world.settings.host_socket, 5.0)
    try:
        listed = await client.processes()
    finally:
        await client.close()
    return next(each.pid for each in listed.processes if each.state == "Running")


async def test_no_request_fails(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(token_of(ROUTER))
    async with real_world() as world:
        router = await routed(world, token)
        statuses: list[int] = []
        done = asyncio.Event()

        async def ask() -> None:
            url, body = f"http://127.0.0.1:{router.port}/v1/completions", {"model": "tiny", "prompt": "x"}
            while not done.is_set():
                async with world.session.post(url, json=body) as answer:
                    await answer.read()
                    statuses.append(answer.status)

        clients = [asyncio.create_task(ask()) for _ in range(CLIENTS)]
        for _ in range(KILLS):
            os.kill(await engine_pid(world), signal.SIGKILL)
            await world.until_phase("Starting")
            served = len(statuses)
            await world.until(lambda served=served: len(statuses) > served + 2 * CLIENTS)  # type: ignore[misc]
        done.set()
        await asyncio.gather(*clients)
        await router.stop(0.0, 0.0)
        assert set(statuses) == {200}
