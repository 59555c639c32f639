# SPDX-License-Identifier: Apache-2.0
"""Requests served whole: bytes in, bytes out, retries before the first byte, clients that leave."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gearshift.api.vocabulary import PodPhase
from tests.functional.router.conftest import StartHouse
from tests.functional.router.fakes import MODEL, FakePod, until

EVENT = b'data: {"choices":[{"text":"\xc3\xa9"}]}\n\n'


def ask(**more: Any) -> dict[str, Any]:
    return {"model": MODEL, "prompt": "hello", **more}


async def streamed(request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Engine": "yes"})
    await response.prepare(request)
    for _ in range(5):
        await response.write(EVENT)
    await response.write(b"data: [DONE]\n\n")
    return response


class Stuck:
    """Engine that sends ``before`` and then nothing until it's told to go on."""

    def __init__(self, before: bytes = b"") -> None:
        self.before = before
        self.started = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        if self.before:
            await response.prepare(request)
            await response.write(self.before)
        self.started.set()
        await self.go.wait()
        if not self.before:
            await response.prepare(request)
        await response.write(b"data: [DONE]\n\n")
        return response


class Broken:
    """Engine whose connection breaks after ``before``."""

    def __init__(self, before: bytes = b"") -> None:
        self.before = before

    async def __call__(self, request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        assert request.transport is not None
        if self.before:
            await response.prepare(request)
            await response.write(self.before)
        request.transport.close()
        return response


async def broken_answer(client: aiohttp.ClientSession, url: str) -> bytes:
    """What arrives of a stream that must not end properly."""
    got = b""
    async with client.post(url, json=ask(stream=True)) as answer:
        try:
            async for chunk in answer.content.iter_any():
                got += chunk
        except aiohttp.ClientPayloadError:
            return got
    raise AssertionError(f"the stream ended as if it were complete: {got!r}")


async def busy(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
    return web.Response(status=503)


async def test_a_whole_answer_passes_unchanged(house: StartHouse, client: aiohttp.ClientSession) -> None:
    pod = FakePod("a")
    at = await house(pod)
    async with client.post(
        f"{at.url}/v1/completions", json=ask(), headers={"X-Request-Id": "r1", "X-Data-Parallel-Rank": "3"}
    ) as answer:
        assert (answer.status, await answer.json()) == (200, {"choices": [{"text": "5"}]})
    assert pod.sent == [ask()]
    assert pod.headers[0]["x-request-id"] == "r1"
    assert "x-data-parallel-rank" not in pod.headers[0]


async def test_a_stream_passes_byte_by_byte(house: StartHouse, client: aiohttp.ClientSession) -> None:
    at = await house(FakePod("a", streamed))
    async with client.post(f"{at.url}/v1/chat/completions", json=ask(stream=True)) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.headers["X-Engine"] == "yes"
        assert await answer.read() == EVENT * 5 + b"data: [DONE]\n\n"


async def test_the_first_byte_does_not_wait_for_the_rest(house: StartHouse, client: aiohttp.ClientSession) -> None:
    engine = Stuck(EVENT)
    at = await house(FakePod("a", engine))
    async with client.post(f"{at.url}/v1/completions", json=ask(stream=True)) as answer:
        assert await answer.content.readany() == EVENT
        engine.go.set()
        assert await answer.read() == b"data: [DONE]\n\n"


@pytest.mark.parametrize("size", [1, 300_000])
async def test_a_large_answer_keeps_its_length(house: StartHouse, client: aiohttp.ClientSession, size: int) -> None:
    async def large(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return web.Response(body=b"x" * size)

    at = await house(FakePod("a", large))
    async with client.post(f"{at.url}/v1/completions", json=ask()) as answer:
        assert answer.headers["Content-Length"] == str(size)
        assert await answer.read() == b"x" * size


async def test_an_engine_error_passes_unchanged(house: StartHouse, client: aiohttp.ClientSession) -> None:
    async def refuse(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "too long"}}, status=400)

    pod = FakePod("a", refuse)
    at = await house(pod)
    async with client.post(f"{at.url}/v1/completions", json=ask()) as answer:
        assert (answer.status, await answer.json()) == (400, {"error": {"message": "too long"}})
    assert len(pod.sent) == 1


@pytest.mark.parametrize("engine", [busy, Broken()])
async def test_a_failure_before_the_first_byte_is_repaired_on_another_pod(
    house: StartHouse, client: aiohttp.ClientSession, engine: Any
) -> None:
    bad, good = FakePod("bad", engine), FakePod("good", streamed)
    at = await house(bad, good)
    good.say_load(50)  # the bad one is chosen first
    await until(lambda: at.router.fleet.pods["uid-good"].reported == 50)
    async with client.post(f"{at.url}/v1/completions", json=ask(stream=True)) as answer:
        assert answer.status == 200
        assert (await answer.read()).endswith(b"[DONE]\n\n")
    assert (len(bad.sent), len(good.sent)) == (1, 1)


async def test_an_engine_that_refuses_connections_is_avoided_for_a_moment(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    dead, good = FakePod("dead"), FakePod("good")
    at = await house(dead, good)
    await dead.engine_runner.cleanup()
    good.say_load(50)
    await until(lambda: at.router.fleet.pods["uid-good"].reported == 50)
    for _ in range(3):
        async with client.post(f"{at.url}/v1/completions", json=ask()) as answer:
            assert answer.status == 200
    assert len(good.sent) == 3
    assert b'gearshift_router_retries_total{reason="connect"} 1.0' in at.router.metrics.page()


async def test_every_pod_failing_is_a_503_that_names_them(house: StartHouse, client: aiohttp.ClientSession) -> None:
    at = await house(FakePod("a", busy), queueTimeout="200ms")
    async with client.post(f"{at.url}/v1/completions", json=ask()) as answer:
        assert answer.status == 503
        assert answer.headers["Retry-After"] == "1"
        error = (await answer.json())["error"]
    assert error["code"] == "no_pod_available"
    assert "apps/chat" in error["message"]
    assert "pod a: status_503" in error["message"]


@pytest.mark.parametrize("told", [False, True], ids=["before the sidecar notices", "as the sidecar says"])
async def test_a_request_waits_for_the_only_engine_to_come_back(
    house: StartHouse, client: aiohttp.ClientSession, *, told: bool
) -> None:
    pod = FakePod("a")
    at = await house(pod)
    await pod.engine_runner.cleanup()
    request = asyncio.create_task(client.post(f"{at.url}/v1/completions", json=ask()))
    await until(lambda: at.router.metrics.retries.labels("connect")._value.get() >= 4)
    if told:
        pod.say(admitting=False, phase=PodPhase.STARTING)
        await until(lambda: pod.acknowledged(0))
    assert not request.done()
    await pod.start_engine(pod.state.engine_port)
    if told:
        pod.say(admitting=True, phase=PodPhase.SERVING)
    async with await request as answer:
        assert answer.status == 200


async def test_requests_that_find_no_place_to_wait_for_a_dead_engine_get_429(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    pod = FakePod("a")
    at = await house(pod, maxQueue=0)
    await pod.engine_runner.cleanup()
    async with client.post(f"{at.url}/v1/completions", json=ask()) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert (await answer.json())["error"]["code"] == "queue_full"


async def test_a_request_that_ends_one_engine_after_the_other_is_given_up(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    pods = [FakePod(name, Broken()) for name in ("a", "b", "c", "d")]
    at = await house(*pods)
    async with client.post(f"{at.url}/v1/completions", json=ask()) as answer:
        assert answer.status == 503
        assert (await answer.json())["error"]["message"].count(": reset") == 3
    assert sum(len(pod.sent) for pod in pods) == 3


async def test_an_answer_of_known_length_is_repaired_even_in_its_middle(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    async def half(request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"x" * 50)
        assert request.transport is not None
        request.transport.close()
        return response

    bad, good = FakePod("bad", half), FakePod("good")
    at = await house(bad, good)
    good.say_load(50)
    await until(lambda: at.router.fleet.pods["uid-good"].reported == 50)
    async with client.post(f"{at.url}/v1/completions", json=ask()) as answer:
        assert await answer.json() == {"choices": [{"text": "5"}]}


async def test_a_stream_broken_between_events_ends_with_an_error_event_and_without_its_end(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    at = await house(FakePod("a", Broken(EVENT)))
    got = await broken_answer(client, f"{at.url}/v1/completions")
    assert got.startswith(EVENT + b"data: ")
    error = json.loads(got.removeprefix(EVENT).removeprefix(b"data: "))["error"]
    assert error["code"] == "stream_interrupted"
    await until(lambda: b"gearshift_router_broken_streams_total 1.0" in at.router.metrics.page())


async def test_a_stream_broken_inside_an_event_gets_no_event(house: StartHouse, client: aiohttp.ClientSession) -> None:
    at = await house(FakePod("a", Broken(EVENT[:10])))
    got = await broken_answer(client, f"{at.url}/v1/completions")
    assert got == EVENT[:10]


@pytest.mark.parametrize("before", [b"", EVENT])
async def test_a_client_that_leaves_cancels_its_request_at_the_engine(
    house: StartHouse, client: aiohttp.ClientSession, before: bytes
) -> None:
    engine = Stuck(before)
    pod = FakePod("a", engine)
    at = await house(pod)
    request = asyncio.create_task(client.post(f"{at.url}/v1/completions", json=ask(stream=True)))
    await engine.started.wait()
    if before:
        (await request).close()
    else:
        request.cancel()
    await until(lambda: pod.cancelled == 1)
    await until(lambda: at.router.fleet.pods["uid-a"].in_flight == 0)
    await until(lambda: b'code="499",route="/v1/completions"' in at.router.metrics.page())


async def test_a_redirect_of_an_engine_is_not_followed(house: StartHouse, client: aiohttp.ClientSession) -> None:
    async def elsewhere(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return web.Response(status=307, headers={"Location": "http://127.0.0.1:1/"})

    at = await house(FakePod("a", elsewhere))
    async with client.post(f"{at.url}/v1/completions", json=ask()) as answer:
        assert answer.status == 502
        assert "Location" not in answer.headers


async def test_load_decides(house: StartHouse, client: aiohttp.ClientSession) -> None:
    full, idle = FakePod("full"), FakePod("idle")
    at = await house(full, idle)
    full.say_load(10, 10)
    await until(lambda: at.router.fleet.pods["uid-full"].reported == 20)
    for _ in range(5):
        async with client.post(f"{at.url}/v1/completions", json=ask()):
            pass
    assert (len(full.sent), len(idle.sent)) == (0, 5)
