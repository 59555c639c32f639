# SPDX-License-Identifier: Apache-2.0
"""The load generator names every way in which a stream can fail."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web

from gearshift.sim.load import Arrival, Target, run_load
from tests.functional.sim.sim_process import Engine

CHUNK = b'data: {"choices":[{"index":0,"text":" a"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":%d,"total_tokens":9,"completion_tokens":%d}}\n\n'
DONE = b"data: [DONE]\n\n"
STREAMS = {
    "": [CHUNK, CHUNK, USAGE % (5, 2), DONE],
    "truncated": [CHUNK, CHUNK, USAGE % (5, 2)],
    "error-event": [CHUNK, b'data: {"error":{"message":"no"}}\n\n', DONE],
    "short": [CHUNK, USAGE % (5, 1), DONE],
}


@pytest_asyncio.fixture
async def server() -> AsyncIterator[str]:
    """A server whose model name says how it fails."""

    async def complete(request: web.Request) -> web.StreamResponse:
        kind = json.loads(await request.read())["model"]
        if kind == "status-429":
            return web.json_response({"error": {"message": "full"}}, status=429)
        response = web.StreamResponse()
        await response.prepare(request)
        for part in STREAMS.get(kind, [CHUNK]):
            await response.write(part)
        if kind == "timeout":
            await asyncio.sleep(60)
        if kind == "broken" and request.transport is not None:
            request.transport.abort()
        return response

    app = web.Application()
    app.add_routes([web.post("/v1/completions", complete)])
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


@pytest.mark.parametrize("kind", [*STREAMS, "status-429", "timeout"])
async def test_failures_by_kind(server: str, kind: str) -> None:
    target = Target(url=server, model=kind, timeout_seconds=0.5 if kind == "timeout" else 10.0)
    (outcome,) = await run_load(target, [Arrival(0.0, 5, 2, 0)])
    assert outcome.failure == kind
    assert bool(outcome.message) == bool(kind) or kind == "timeout"


async def test_a_broken_connection_is_a_truncated_stream(server: str) -> None:
    (outcome,) = await run_load(Target(url=server, model="broken"), [Arrival(0.0, 5, 2, 0)])
    assert outcome.failure == "truncated"


async def test_nobody_there_is_refused(unused_tcp_port: int) -> None:
    target = Target(url=f"http://127.0.0.1:{unused_tcp_port}", model="m")
    (outcome,) = await run_load(target, [Arrival(0.0, 5, 2, 0)])
    assert outcome.failure == "refused"


async def test_arrivals_beyond_the_bound_are_not_sent(server: str) -> None:
    target = Target(url=server, model="timeout", timeout_seconds=0.5, max_in_flight=1)
    outcomes = await run_load(target, [Arrival(0.0, 5, 2, 0), Arrival(0.0, 5, 2, 0)])
    assert [outcome.failure for outcome in outcomes] == ["timeout", "not-sent"]


async def test_a_whole_stream_is_timed_and_counted(shared_engine: Engine) -> None:
    target = Target(url=shared_engine.url, model="m")
    first, second = await run_load(target, [Arrival(0.0, 40, 9, 1), Arrival(0.1, 40, 9, 1)])
    assert (first.failure, first.prompt_tokens, first.completion_tokens) == ("", 40, 9)
    assert len(first.gaps_seconds) == 8
    assert first.ttft_seconds is not None
    assert 0 < first.ttft_seconds < first.e2e_seconds
    assert second.sent_at >= 0.1
    assert second.text_digest == first.text_digest
