# SPDX-License-Identifier: Apache-2.0
"""The promise that switching rests on: a pod whose drain is acknowledged gets nothing until it admits again, and no
request is lost by it.
"""

import asyncio
from typing import Any

import aiohttp
from aiohttp import web

from gearshift.api.vocabulary import PodPhase, Role
from tests.functional.router.conftest import StartHouse
from tests.functional.router.fakes import MODEL, FakePod, until

SWITCHES = 30


class Switching:
    """Engine that must not see a request while it is switched; by its role it keeps a KV cache or answers."""

    def __init__(self) -> None:
        self.closed = False
        self.active = 0
        self.intruders = 0  # requests that were there, or came, while it was switched

    async def __call__(self, _request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        self.intruders += self.closed
        self.active += 1
        await asyncio.sleep(0.002)
        self.active -= 1
        kept = {"remote_host": "h"} if body.get("kv_transfer_params", {}).get("do_remote_decode") else None
        return web.json_response({"choices": [], "kv_transfer_params": kept})


async def switch(pod: FakePod, engine: Switching, role: Role) -> None:
    """What a sidecar does: unpublish, drain, switch, publish."""
    pod.say(admitting=False, phase=PodPhase.DRAINING)
    await until(lambda: pod.acknowledged(0))
    engine.closed = True
    engine.intruders += engine.active
    await asyncio.sleep(0.002)
    engine.closed = False
    pod.say(admitting=True, phase=PodPhase.SERVING, role=role)


async def test_no_request_is_lost_or_meets_a_pod_that_switches(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    engines = [Switching(), Switching()]
    pods = [FakePod("a", engines[0], role=Role.PREFILL), FakePod("b", engines[1], role=Role.DECODE)]
    at = await house(*pods)
    statuses: list[int] = []
    done = asyncio.Event()

    async def ask() -> None:
        while not done.is_set():
            async with client.post(f"{at.url}/v1/chat/completions", json={"model": MODEL, "messages": []}) as answer:
                await answer.read()
                statuses.append(answer.status)

    clients = [asyncio.create_task(ask()) for _ in range(8)]
    for number in range(SWITCHES):
        served = len(statuses)
        await asyncio.gather(
            *(switch(pods[i], engines[i], list(Role)[(number + i) % 3]) for i in range(1 + number % 2))
        )
        await until(lambda served=served: len(statuses) > served + 8)  # type: ignore[misc]
    done.set()
    await asyncio.gather(*clients)
    assert set(statuses) == {200}
    assert [engine.intruders for engine in engines] == [0, 0]
    assert all(pod.in_flight == 0 for pod in at.router.fleet.pods.values())
