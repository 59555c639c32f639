# SPDX-License-Identifier: Apache-2.0
"""The OpenAI routes of a running simulated shared_engine."""

import asyncio
import json

import aiohttp
import pytest

from tests.functional.sim.sim_process import Engine, eventually

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Tell me"}], "max_tokens": 12}


async def is_idle(engine: Engine) -> bool:
    """The engine holds no request and no KV."""
    state = await engine.state()
    return (state["running"], state["waiting"], state["kvUsage"]) == (0, 0, 0.0)


async def test_probes_and_models(shared_engine: Engine) -> None:
    assert await shared_engine.get("/health") == (200, "")
    assert (await shared_engine.get("/version"))[1]["version"]
    _, models = await shared_engine.get("/v1/models")
    assert [(model["id"], model["max_model_len"]) for model in models["data"]] == [("m", 32768)]


async def test_a_chat_streams_the_text_of_its_full_answer(shared_engine: Engine) -> None:
    _, answer = await shared_engine.post("/v1/chat/completions", CHAT)
    body = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    async with shared_engine.session.post(shared_engine.url + "/v1/chat/completions", json=body) as response:
        assert response.content_type == "text/event-stream"
        events = (await response.text()).split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    text = "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks[1:-1])
    assert text == answer["choices"][0]["message"]["content"]
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["completion_tokens"]) == ([], 12)
    assert len({chunk["id"] for chunk in chunks}) == 1


async def test_tokens_come_one_by_one_not_at_the_end(shared_engine: Engine) -> None:
    body = {"model": "m", "prompt": "Hi", "max_tokens": 2000, "ignore_eos": True, "stream": True}
    async with shared_engine.session.post(shared_engine.url + "/v1/completions", json=body) as response:
        assert (await response.content.readline()).startswith(b"data: {")
        assert (await shared_engine.state())["running"] == 1
    await eventually(lambda: is_idle(shared_engine))


async def test_a_request_id_is_kept(shared_engine: Engine) -> None:
    headers = {"X-Request-Id": "abc/1"}
    async with shared_engine.session.post(
        shared_engine.url + "/v1/completions", json={"prompt": "Hi"}, headers=headers
    ) as response:
        assert (await response.json())["id"] == "cmpl-abc/1"


async def test_a_client_that_hangs_up_aborts_its_request(shared_engine: Engine) -> None:
    aborted = 'vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"}'
    before = (await shared_engine.samples())[aborted]
    for stream in (True, False):
        body = {"model": "m", "prompt": "Hi", "max_tokens": 30000, "ignore_eos": True, "stream": stream}
        soon = aiohttp.ClientTimeout(total=0.5)
        with pytest.raises(TimeoutError):
            async with shared_engine.session.post(
                shared_engine.url + "/v1/completions", json=body, timeout=soon
            ) as response:
                await response.read()
        await eventually(lambda: is_idle(shared_engine))
    assert (await shared_engine.samples())[aborted] == before + 2


@pytest.mark.parametrize(
    ("path", "body", "status", "kind"),
    [
        ("/v1/completions", b"{", 400, "BadRequestError"),
        ("/v1/completions", b"[" * 100_000, 400, "BadRequestError"),
        ("/v1/completions", {"model": "x", "prompt": "Hi"}, 404, "NotFoundError"),
        ("/v1/completions", {"prompt": "Hi", "max_tokens": 0}, 400, "BadRequestError"),
        ("/v1/completions", {"prompt": [1] * 40_000}, 400, "BadRequestError"),
        ("/v1/chat/completions", {"messages": []}, 400, "BadRequestError"),
        ("/v1/chat/completions", {"prompt": "Hi"}, 400, "BadRequestError"),
    ],
)
async def test_errors_have_openais_shape(
    shared_engine: Engine, path: str, body: object, status: int, kind: str
) -> None:
    got, answer = await shared_engine.post(path, body)
    assert (got, answer["error"]["code"], answer["error"]["type"]) == (status, status, kind)
    assert answer["error"]["message"]


async def test_a_body_over_the_limit_is_refused_before_it_is_read(shared_engine: Engine) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", await shared_engine.process.port())
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: m\r\nContent-Length: 99999999\r\n\r\n")
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    await writer.wait_closed()
