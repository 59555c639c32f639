# SPDX-License-Identifier: Apache-2.0
"""What a router refuses, and in which words: everything is an OpenAI error that names the bad value."""

import asyncio
import gzip
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gearshift.api.vocabulary import PodPhase
from tests.functional.router.conftest import StartHouse
from tests.functional.router.fakes import MODEL, FakePod, until

GOOD = json.dumps({"model": MODEL, "prompt": "x"}).encode()


class Gate:
    """Engine that answers when told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def __call__(self, _request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        await self.go.wait()
        return web.json_response({})


async def refused(client: aiohttp.ClientSession, method: str, url: str, **arguments: Any) -> tuple[int, dict[str, Any]]:
    async with client.request(method, url, **arguments) as answer:
        error = (await answer.json())["error"]
        assert set(error) == {"message", "type", "param", "code"}
        return answer.status, error


@pytest.mark.parametrize(
    ("body", "status", "code", "words"),
    [
        (b"{", 400, "invalid_json", "not valid JSON"),
        (b"", 400, "invalid_json", "not valid JSON"),
        (b'{"model": "\xff"}', 400, "invalid_json", "not valid JSON"),
        (b"[" * 10_000, 400, "invalid_json", "not valid JSON"),
        (b"[1]", 400, "invalid_json", "'[1]'"),
        (b"{}", 400, "invalid_value", "'model' must be a non-empty string, not 'null'"),
        (b'{"model": 7}', 400, "invalid_value", "'7'"),
        (b'{"model": "gpt-9"}', 404, "model_not_found", "'gpt-9' does not exist; this service serves 'tiny'"),
        (b'{"model": "a\\r\\nX-Evil: 1"}', 404, "model_not_found", "\\r\\n"),
        (b'{"model": "tiny", "stream": "true"}', 400, "invalid_value", "'stream' must be true or false, not 'true'"),
        (b'{"model": "tiny", "kv_transfer_params": null}', 400, "forbidden_field", "kv_transfer_params"),
    ],
)
async def test_bad_bodies(
    house: StartHouse, client: aiohttp.ClientSession, body: bytes, status: int, code: str, words: str
) -> None:
    pod = FakePod("a")
    at = await house(pod)
    got, error = await refused(client, "POST", f"{at.url}/v1/completions", data=body)
    assert (got, error["code"]) == (status, code)
    assert words in error["message"]
    assert not pod.sent


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/completions", 405, "method_not_allowed"),
        ("POST", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/embeddings", 404, "not_found"),
        ("GET", "/v1/models/other", 404, "model_not_found"),
    ],
)
async def test_wrong_paths_and_methods(
    house: StartHouse, client: aiohttp.ClientSession, method: str, path: str, status: int, code: str
) -> None:
    at = await house(FakePod("a"))
    got, error = await refused(client, method, at.url + path)
    assert (got, error["code"]) == (status, code)


async def raw(port: int, request: bytes) -> bytes:
    """Send bytes and read until the router closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize(
    "head",
    [
        b"GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
    ids=["absolute form", "CONNECT", "two framings", "two lengths", "upgrade"],
)
async def test_requests_that_try_something(house: StartHouse, head: bytes) -> None:
    pod = FakePod("a")
    at = await house(pod)
    answer = asyncio.create_task(raw(at.router.port, head))
    if b"Upgrade" in head:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.router.port)
        answer.cancel()
        writer.write(head)
        assert b" 400 " in await reader.readline()
        writer.close()
    else:
        assert (await answer).split(b" ", 2)[1] in (b"400", b"405")
    assert not pod.sent


async def test_a_large_body_is_refused_before_it_is_read(house: StartHouse) -> None:
    at = await house(FakePod("a"), maxBodyBytes=2048)
    reader, writer = await asyncio.open_connection("127.0.0.1", at.router.port)
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n")
    assert b" 413 " in await reader.readuntil(b"2048 bytes")
    writer.close()


async def test_a_large_chunked_body_is_refused_as_it_grows(house: StartHouse, client: aiohttp.ClientSession) -> None:
    at = await house(FakePod("a"), maxBodyBytes=2048)

    async def parts() -> Any:
        for _ in range(4):
            yield b"x" * 1000

    status, error = await refused(client, "POST", f"{at.url}/v1/completions", data=parts())
    assert (status, error["code"]) == (413, "body_too_large")


async def test_chunked_bodies_and_expectations_are_served(house: StartHouse, client: aiohttp.ClientSession) -> None:
    pod = FakePod("a")
    at = await house(pod)

    async def parts() -> Any:
        yield GOOD[:5]
        yield GOOD[5:]

    async with client.post(f"{at.url}/v1/completions", data=parts(), expect100=True) as answer:
        assert answer.status == 200
    assert pod.sent == [json.loads(GOOD)]


async def test_compressed_bodies_are_refused(house: StartHouse, client: aiohttp.ClientSession) -> None:
    at = await house(FakePod("a"))
    status, error = await refused(
        client, "POST", f"{at.url}/v1/completions", data=gzip.compress(GOOD), headers={"Content-Encoding": "gzip"}
    )
    assert (status, error["code"]) == (415, "unsupported_encoding")


async def test_more_than_max_in_flight_gets_429(house: StartHouse, client: aiohttp.ClientSession) -> None:
    gate = Gate()
    pod = FakePod("a", gate)
    at = await house(pod, maxInFlight=1, retryAfter="3s")
    first = asyncio.create_task(client.post(f"{at.url}/v1/completions", data=GOOD))
    await until(lambda: pod.sent)
    async with client.post(f"{at.url}/v1/completions", data=GOOD) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "3")
        assert (await answer.json())["error"]["code"] == "too_many_in_flight"
    gate.go.set()
    assert (await first).status == 200
    async with client.post(f"{at.url}/v1/completions", data=GOOD) as answer:
        assert answer.status == 200


async def test_requests_wait_for_a_pod_and_a_full_queue_gets_429(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    pod = FakePod("a")
    at = await house(pod, maxQueue=1)
    pod.say(admitting=False, phase=PodPhase.SWITCHING)
    await until(lambda: pod.acknowledged(0))
    waiting = asyncio.create_task(client.post(f"{at.url}/v1/completions", data=GOOD))
    await until(lambda: b"gearshift_router_queue 1.0" in at.router.metrics.page())
    status, error = await refused(client, "POST", f"{at.url}/v1/completions", data=GOOD)
    assert (status, error["code"]) == (429, "queue_full")
    pod.say(admitting=True, phase=PodPhase.SERVING)
    assert (await waiting).status == 200
    assert len(pod.sent) == 1


async def test_a_client_that_leaves_the_queue_frees_its_place(house: StartHouse, client: aiohttp.ClientSession) -> None:
    pod = FakePod("a", admitting=False)
    at = await house(pod, maxQueue=1)
    waiting = asyncio.create_task(client.post(f"{at.url}/v1/completions", data=GOOD))
    await until(lambda: b"gearshift_router_queue 1.0" in at.router.metrics.page())
    waiting.cancel()
    await until(lambda: b"gearshift_router_queue 0.0" in at.router.metrics.page())


@pytest.mark.parametrize(
    ("pods", "why"),
    [
        ([], "it has no pods"),
        ([FakePod("a", admitting=False, phase=PodPhase.DRAINING)], "none of its 1 pods admits requests (1 Draining)"),
    ],
    ids=["no pods", "draining"],
)
async def test_no_pod_in_time_is_a_503_with_its_reason(
    house: StartHouse, client: aiohttp.ClientSession, pods: list[FakePod], why: str
) -> None:
    at = await house(*pods, queueTimeout="50ms")
    async with client.post(f"{at.url}/v1/completions", data=GOOD) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        error = (await answer.json())["error"]
    assert error["message"] == f"InferenceService apps/chat can't serve this request now: {why}."


async def test_models_health_and_metrics(house: StartHouse, client: aiohttp.ClientSession) -> None:
    at = await house(FakePod("a"), FakePod("b", admitting=False))
    async with client.get(f"{at.url}/v1/models?x=1") as answer:
        assert [card["id"] for card in (await answer.json())["data"]] == [MODEL]
    async with client.get(f"{at.url}/v1/models/{MODEL}") as answer:
        assert (await answer.json())["object"] == "model"
    async with client.get(f"{at.url}/health") as answer:
        assert await answer.json() == {"status": "ok", "service": "apps/chat", "pods": 2, "admitting": 1}
    for port in (at.router.port, at.router.metrics_port):
        async with client.get(f"http://127.0.0.1:{port}/metrics") as answer:
            page = await answer.text()
        assert 'gearshift_router_pod_admitting{pod="b",role="Unified"} 0.0' in page
    status, _ = await refused(client, "GET", f"http://127.0.0.1:{at.router.metrics_port}/v1/models")
    assert status == 404
