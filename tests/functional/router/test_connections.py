# SPDX-License-Identifier: Apache-2.0
"""Connections that misbehave: malformed or half-sent heads, and engines whose node is gone without a word."""

import asyncio
import ctypes
import json
import socket
import struct
from typing import Any

import aiohttp
import pytest

from gearshift.router import connection, upstream
from tests.functional.router.conftest import StartHouse
from tests.functional.router.fakes import MODEL, FakePod, House, until

GOOD = {"model": MODEL, "prompt": "x"}


async def talk(port: int, request: bytes) -> tuple[bytes, dict[str, Any]]:
    """Send bytes and read until the router closes: the status line and the error."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        async with asyncio.timeout(5):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return head.partition(b"\r\n")[0], error


@pytest.mark.parametrize(
    "head",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 20_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    ],
    ids=["no HTTP", "TLS", "long header", "header without a colon", "two lengths"],
)
async def test_malformed_http_is_an_openai_error(house: StartHouse, head: bytes) -> None:
    at = await house()
    status, error = await talk(at.router.port, head)
    assert (status.split(b" ")[1], error["code"]) == (b"400", "malformed_http")
    assert error["type"] == "invalid_request_error"
    assert "\n" not in error["message"]
    assert len(error["message"]) < 300
    assert b'gearshift_router_requests_total{code="400",route="other"} 1.0' in at.router.metrics.page()


async def test_a_half_sent_head_is_given_up(house: StartHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)
    at = await house()
    status, error = await talk(at.router.port, b"GET /health HTTP/1.1\r\nHost: x\r\n")
    assert (status, error["code"]) == (b"HTTP/1.1 408 Request Timeout", "head_timeout")


async def test_a_connection_between_two_requests_is_not_taken_for_a_half_sent_head(
    house: StartHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
    at = await house()
    reader, writer = await asyncio.open_connection("127.0.0.1", at.router.port)
    for pause in (0.0, 0.2):
        await asyncio.sleep(pause)
        writer.write(b"GET /health HT")
        await writer.drain()
        writer.write(b"TP/1.1\r\nHost: x\r\n\r\n")
        assert b" 200 " in await reader.readuntil(b"}")
    writer.close()


async def connections(at: House, count: int) -> list[asyncio.StreamWriter]:
    """Open connections that say nothing."""
    before = at.router._clients.open
    made = [(await asyncio.open_connection("127.0.0.1", at.router.port))[1] for _ in range(count)]
    await until(lambda: at.router._clients.open == before + count)
    return made


async def test_a_connection_too_many_is_told_so_and_closed(house: StartHouse, client: aiohttp.ClientSession) -> None:
    at = await house(FakePod("a"), maxConnections=2, retryAfter="3s")
    made = await connections(at, 2)
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert (answer.status, answer.headers["Retry-After"], answer.headers["Connection"]) == (429, "3", "close")
        assert (await answer.json())["error"]["code"] == "too_many_connections"
    async with client.get(f"{at.url}/health") as answer:
        assert (answer.status, answer.headers["Connection"]) == (200, "close")
    await until(lambda: at.router._clients.open == 2)
    assert b"gearshift_router_connections 2.0" in at.router.metrics.page()
    made.pop().close()
    await until(lambda: at.router._clients.open == 1)
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert answer.status == 200
    made.pop().close()


async def test_a_flood_of_connections_is_closed_unheard(house: StartHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SURPLUS_CONNECTIONS", 1)
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)
    at = await house(maxConnections=1)
    made = await connections(at, 1)
    told = await asyncio.open_connection("127.0.0.1", at.router.port)
    unheard = await asyncio.open_connection("127.0.0.1", at.router.port)
    async with asyncio.timeout(5):
        assert await unheard[0].read() == b""
        assert (await told[0].read()).startswith(b"HTTP/1.1 408 ")  # its place is not kept for long
    await until(lambda: at.router._clients.open == 1)
    for writer in (*made, told[1], unheard[1]):
        writer.close()
        await writer.wait_closed()


async def test_a_wrong_method_is_told_the_right_ones(house: StartHouse, client: aiohttp.ClientSession) -> None:
    at = await house()
    async with client.get(f"{at.url}/v1/completions") as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")


def deafen(sock: Any) -> None:
    """Drop every packet that comes to a socket, as when its machine has lost power."""
    code = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: keep 0 bytes of each
    sock.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", 1, ctypes.addressof(code)))  # SO_ATTACH_FILTER


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An engine that serves one request, and whose machine then dies."""
    await reader.readuntil(b"}")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
    await writer.drain()
    deafen(writer.get_extra_info("socket"))
    try:
        await asyncio.Event().wait()
    finally:
        writer.transport.abort()


async def test_a_request_that_a_dead_machine_never_got_is_sent_to_another_pod(
    house: StartHouse, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TCP alone puts up with bytes that nobody acknowledges for a quarter of an hour."""
    monkeypatch.setattr(upstream, "UNACKNOWLEDGED_SECONDS", 0.3)
    dies, lives = FakePod("dies"), FakePod("lives")
    at = await house(dies, lives)
    connections: list[asyncio.Task[None]] = []
    engine = await asyncio.start_server(
        lambda *ends: connections.append(asyncio.create_task(answer_once(*ends))), "127.0.0.1", 0
    )
    dies.say(engine_port=engine.sockets[0].getsockname()[1])
    lives.say_load(9)
    await until(lambda: dies.acknowledged(0) and at.router.fleet.pods["uid-lives"].reported == 9)
    for _ in range(2):
        async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
            assert answer.status == 200
    assert len(lives.sent) == 1
    engine.close()
    for connection_task in connections:
        connection_task.cancel()
    await asyncio.gather(*connections, return_exceptions=True)
