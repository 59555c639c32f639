# SPDX-License-Identifier: Apache-2.0
"""Requests served by a prefill and a decode pod: both bodies, what each pod owes meanwhile, and what happens when one
is missing or fails.
"""

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gearshift.api.vocabulary import Role
from tests.functional.router.conftest import StartHouse
from tests.functional.router.fakes import MODEL, FakePod, until, whole_answer

KEPT = {
    "do_remote_prefill": True,
    "remote_engine_id": "e1",
    "remote_block_ids": [[1, 2]],
    "remote_host": "10.0.0.1",
    "remote_port": 5600,
}


def ask(**more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], **more}


async def keep(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
    return web.json_response({"choices": [], "kv_transfer_params": KEPT})


async def busy(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
    return web.Response(status=503)


class Held:
    """Decode engine that starts and ends its stream when told to."""

    def __init__(self) -> None:
        self.started, self.begin, self.finish = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        self.started.set()
        await self.begin.wait()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        await self.finish.wait()
        await response.write(b"data: [DONE]\n\n")
        return response


def prefill(name: str = "p", engine: Any = keep) -> FakePod:
    return FakePod(name, engine, role=Role.PREFILL)


def decode(name: str = "d", engine: Any = whole_answer) -> FakePod:
    return FakePod(name, engine, role=Role.DECODE)


async def chat(client: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> int:
    async with client.post(f"{url}/v1/chat/completions", json=body) as answer:
        await answer.read()
        return answer.status


async def test_both_steps_get_their_bodies(house: StartHouse, client: aiohttp.ClientSession) -> None:
    p, d = prefill(), decode()
    at = await house(p, d)
    body = ask(
        stream=True, stream_options={"include_usage": True}, max_tokens=50, max_completion_tokens=60, min_tokens=10
    )
    assert await chat(client, at.url, body) == 200
    transfer = {
        "do_remote_decode": True,
        "do_remote_prefill": False,
        "remote_engine_id": None,
        "remote_block_ids": None,
        "remote_host": None,
        "remote_port": None,
    }
    step_one = ask(stream=False, max_tokens=1, max_completion_tokens=1, min_tokens=1, kv_transfer_params=transfer)
    assert p.sent == [step_one]
    assert d.sent == [{**body, "kv_transfer_params": KEPT}]
    assert b'gearshift_router_pd_requests_total{path="split"} 1.0' in at.router.metrics.page()


async def test_a_prefill_pod_owes_the_request_until_the_decode_streams(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    engine = Held()
    p, d = prefill(), decode(engine=engine)
    at = await house(p, d)
    request = asyncio.create_task(chat(client, at.url, ask(stream=True)))
    await engine.started.wait()
    p.say(admitting=False)
    d.say(admitting=False)
    await until(lambda: p.acknowledged(1) and d.acknowledged(1))
    engine.begin.set()
    await until(lambda: p.acknowledged(0))
    assert d.acknowledged(1)
    engine.finish.set()
    assert await request == 200
    await until(lambda: d.acknowledged(0))


async def test_a_prefill_pod_is_free_during_a_decode_that_shows_nothing_before_its_end(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    engine = Held()
    p, d = prefill(), decode(engine=engine)
    at = await house(p, d)
    request = asyncio.create_task(chat(client, at.url, ask()))
    await engine.started.wait()
    pods = at.router.fleet.pods
    assert (pods["uid-p"].in_flight, pods["uid-d"].in_flight) == (0, 1)
    p.say(admitting=False)
    await until(lambda: p.acknowledged(0))
    engine.begin.set()
    engine.finish.set()
    assert await request == 200
    assert (pods["uid-p"].in_flight, pods["uid-d"].in_flight) == (0, 0)


async def test_nothing_kept_means_that_the_decode_pod_computes_the_prompt(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    async def keep_nothing(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"choices": [], "kv_transfer_params": None})

    p, d = prefill(engine=keep_nothing), decode()
    at = await house(p, d)
    assert await chat(client, at.url, ask()) == 200
    assert d.sent == [ask()]


async def test_a_refusal_by_the_prefill_pod_is_the_answer(house: StartHouse, client: aiohttp.ClientSession) -> None:
    async def refuse(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "prompt too long"}}, status=400)

    p, d = prefill(engine=refuse), decode()
    at = await house(p, d)
    async with client.post(f"{at.url}/v1/chat/completions", json=ask()) as answer:
        assert (answer.status, await answer.json()) == (400, {"error": {"message": "prompt too long"}})
    assert not d.sent


@pytest.mark.parametrize(
    "more",
    [
        {"n": 2},
        {"prompt": ["one", "two"]},
        {"prompt": [[1, 2], [3]]},
        {"prompt_logprobs": 0},
        {"echo": True},
        {"best_of": 2},
    ],
)
async def test_a_request_that_needs_more_than_one_cache_is_served_whole(
    house: StartHouse, client: aiohttp.ClientSession, more: dict[str, Any]
) -> None:
    p, d = prefill(), decode()
    at = await house(p, d)
    body = {"model": MODEL, "prompt": "hello", **more}
    async with client.post(f"{at.url}/v1/completions", json=body) as answer:
        assert answer.status == 200
    assert (p.sent, d.sent) == ([], [body])


@pytest.mark.parametrize("pod", [prefill(), decode()], ids=["only prefill", "only decode"])
async def test_one_role_alone_serves_whole_requests(
    house: StartHouse, client: aiohttp.ClientSession, pod: FakePod
) -> None:
    at = await house(pod)
    assert await chat(client, at.url, ask()) == 200
    assert pod.sent == [ask()]
    assert b'gearshift_router_pd_requests_total{path="fallback"} 1.0' in at.router.metrics.page()


@pytest.mark.parametrize("busy_one", ["p", "d"])
async def test_a_step_that_fails_is_repaired_by_other_pods(
    house: StartHouse, client: aiohttp.ClientSession, busy_one: str
) -> None:
    p1, p2, d1, d2 = prefill("p"), prefill("p2"), decode("d"), decode("d2")
    at = await house(p1, p2, d1, d2)
    pods = {pod.name: pod for pod in at.pods}
    pods[busy_one].engine = busy
    for name in ("p2", "d2"):  # the busy one is chosen first
        pods[name].say_load(9)
    await until(lambda: all(at.router.fleet.pods[f"uid-{name}"].reported == 9 for name in ("p2", "d2")))
    assert await chat(client, at.url, ask()) == 200
    assert len(pods[f"{busy_one}2"].sent) == 1
    assert all(pod.in_flight == 0 for pod in at.router.fleet.pods.values())


async def test_a_flip_moves_the_next_request(house: StartHouse, client: aiohttp.ClientSession) -> None:
    a, b = prefill("a"), decode("b")
    at = await house(a, b)
    assert await chat(client, at.url, ask()) == 200
    a.say(role=Role.DECODE)
    b.say(role=Role.PREFILL)
    a.engine, b.engine = whole_answer, keep
    await until(lambda: a.acknowledged(0) and b.acknowledged(0))
    assert await chat(client, at.url, ask()) == 200
    assert a.sent[1]["kv_transfer_params"] == KEPT
    assert b.sent[1]["max_tokens"] == 1
