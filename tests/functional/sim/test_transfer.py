# SPDX-License-Identifier: Apache-2.0
"""Prefill on one engine, decode on another: same text, KV freed, and a broken split is seen."""

import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from tests.functional.sim.sim_process import Engine, eventually

PROMPT = "Once upon a time there was a small engine that could not do all of its work alone. " * 20
REMOTE_DECODE = {"do_remote_decode": True, "do_remote_prefill": False}
FAILED = 'vllm:nixl_num_failed_transfers_total{engine="0",model_name="m"}'


@pytest_asyncio.fixture
async def other() -> AsyncIterator[Engine]:
    """A second engine, in another layout."""
    async with await Engine.start("--accelerators", "2", "--layout", "DP", "--role", "Decode") as engine:
        yield engine


async def prefill(engine: Engine, prompt: str = PROMPT) -> dict[str, Any]:
    """Transfer parameters of a prefill on ``engine``."""
    answer = await engine.complete(prompt, max_tokens=1, kv_transfer_params=REMOTE_DECODE)
    params = answer["kv_transfer_params"]
    assert isinstance(params, dict)
    return params


async def test_a_split_request_has_the_local_text_in_both_directions(engine: Engine, other: Engine) -> None:
    local = await engine.text(PROMPT, max_tokens=30)
    for source, target in ((engine, other), (other, engine)):
        params = await prefill(source)
        assert params["do_remote_prefill"] is True
        assert params["remote_block_ids"][0]
        assert (await source.state())["kvUsage"] > 0
        assert (await source.state())["details"]["kvHeld"] == "1"
        assert await target.text(PROMPT, max_tokens=30, kv_transfer_params=params) == local
        assert (await source.state())["kvUsage"] == 0
        assert (await source.state())["details"]["kvHeld"] == "0"
        samples = await target.samples()
        external = [value for series, value in samples.items() if 'source="external_kv_transfer"' in series]
        assert sum(external) == params["remote_num_tokens"] - 1
        assert samples[FAILED] == 0


async def test_kv_that_is_gone_is_recomputed_and_counted(engine: Engine, other: Engine) -> None:
    local = await engine.text(PROMPT, max_tokens=30)
    params = await prefill(engine)
    assert await other.text(PROMPT, max_tokens=30, kv_transfer_params=params) == local
    assert await other.text(PROMPT, max_tokens=30, kv_transfer_params=params) == local
    assert (await other.samples())[FAILED] == 1


async def test_an_engine_that_died_or_restarted_is_seen(engine: Engine, other: Engine) -> None:
    local = await other.text(PROMPT, max_tokens=5)
    params = await prefill(engine)
    wrong = {**params, "remote_engine_id": "0" * 32}
    assert await other.text(PROMPT, max_tokens=5, kv_transfer_params=wrong) == local
    engine.process.process.kill()
    engine.process.process.wait()
    assert await other.text(PROMPT, max_tokens=5, kv_transfer_params=params) == local
    assert await other.text(PROMPT, max_tokens=5, kv_transfer_params={"do_remote_prefill": True}) == local
    assert (await other.samples())[FAILED] == 3


async def test_kv_of_another_prompt_gives_another_text(engine: Engine, other: Engine) -> None:
    params = await prefill(engine, "Something else entirely. " * 30)
    assert await other.text(PROMPT, max_tokens=5, kv_transfer_params=params) != await other.text(PROMPT, max_tokens=5)


async def test_the_fault_lose_kv_breaks_the_split(engine: Engine, other: Engine) -> None:
    await engine.post("/gearshift/v1/faults", {"faults": ["lose-kv"]})
    local = await other.text(PROMPT, max_tokens=5)
    assert await other.text(PROMPT, max_tokens=5, kv_transfer_params=await prefill(engine)) == local
    assert (await other.samples())[FAILED] == 1


async def test_the_side_channel_has_its_own_port_and_serves_nothing_else() -> None:
    port = free_port()
    async with (
        await Engine.start("--side-channel-port", str(port)) as source,
        await Engine.start() as target,
    ):
        params = await prefill(source)
        assert params["remote_port"] == port
        local = await source.text(PROMPT, max_tokens=5)
        assert await target.text(PROMPT, max_tokens=5, kv_transfer_params=params) == local
        assert (await target.samples())[FAILED] == 0
        async with target.session.get(f"http://127.0.0.1:{port}/gearshift/v1/engine") as response:
            assert response.status == 404

        async def is_freed() -> bool:
            return bool((await source.state())["kvUsage"] == 0)

        await eventually(is_freed)


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
