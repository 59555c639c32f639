# SPDX-License-Identifier: Apache-2.0
"""The control routes under load: pause, layouts, roles; and who may use them."""

import asyncio
import socket

import aiohttp
import pytest

from gearshift.api.engine import EngineState
from gearshift.sim.load import Phase, Target, draw_arrivals, run_load
from tests.functional.sim.sim_process import Engine


async def test_the_engine_describes_itself(engine: Engine) -> None:
    state = EngineState.model_validate(await engine.state())
    assert (state.layout, state.role, state.epoch, state.paused) == ("TP", "Unified", 0, False)
    assert list(state.layouts) == ["TP", "SP", "DP", "Shift"]
    assert (state.ranks, state.world_size) == (4, 4)
    assert (state.knobs.max_num_batched_tokens, state.knobs.max_num_seqs) == (8192, 256)


async def test_layouts_switch_under_load_without_a_failure_and_with_the_same_text(engine: Engine) -> None:
    target = Target(url=engine.url, model="m")
    phase = Phase(seconds=2.0, requests_per_second=60, prompt_tokens=300, output_tokens=60, spread=0.5)
    arrivals = draw_arrivals([phase], seed=3, max_requests=1000)

    async def keep_switching() -> int:
        for epoch in range(1, 41):
            layout = ("DP", "Shift", "TP", "SP")[epoch % 4]
            status, state = await engine.post("/gearshift/v1/layout", {"layout": layout, "epoch": epoch})
            assert (status, state["layout"], state["epoch"]) == (200, layout, epoch)
            await asyncio.sleep(0.04)
        return epoch

    outcomes, epoch = await asyncio.gather(run_load(target, arrivals), keep_switching())
    assert [(each.failure, each.message) for each in outcomes if each.failure] == []
    assert (await engine.state())["epoch"] == epoch
    again = await run_load(target, arrivals)
    assert [each.text_digest for each in again] == [each.text_digest for each in outcomes]


async def test_a_paused_engine_holds_its_requests(engine: Engine) -> None:
    body = {"model": "m", "prompt": "Hi", "max_tokens": 400, "ignore_eos": True, "stream": True}
    async with engine.session.post(engine.url + "/v1/completions", json=body) as response:
        await response.content.readline()
        status, state = await engine.post("/gearshift/v1/pause", {"timeoutSeconds": 5})
        assert (status, state["paused"], state["running"]) == (200, True, 1)
        before = await engine.samples()
        waiting = asyncio.create_task(engine.text("Later", max_tokens=3))
        tokens = 'vllm:generation_tokens_total{engine="0",model_name="m"}'
        await asyncio.sleep(0.1)
        assert (await engine.samples())[tokens] == before[tokens]
        assert (await engine.post("/gearshift/v1/resume", {}))[1]["paused"] is False
        assert (await response.text()).endswith("data: [DONE]\n\n")
        assert await waiting


async def test_a_switch_while_paused_stays_paused(engine: Engine) -> None:
    await engine.post("/gearshift/v1/pause", {})
    _, state = await engine.post("/gearshift/v1/layout", {"layout": "DP", "epoch": 4})
    assert (state["paused"], state["layout"], state["epoch"]) == (True, "DP", 4)


async def test_a_role_sets_knobs_and_none_restores_the_start_value(engine: Engine) -> None:
    order = {"role": "Decode", "epoch": 1, "knobs": {"maxNumBatchedTokens": 256, "longPrefillTokenThreshold": 64}}
    _, state = await engine.post("/gearshift/v1/role", order)
    assert (state["role"], state["epoch"]) == ("Decode", 1)
    assert state["knobs"] == {"maxNumBatchedTokens": 256, "maxNumSeqs": 256, "longPrefillTokenThreshold": 64}
    _, state = await engine.post("/gearshift/v1/role", {"role": "Prefill", "epoch": 2})
    assert state["knobs"] == {"maxNumBatchedTokens": 8192, "maxNumSeqs": 256, "longPrefillTokenThreshold": 0}


async def test_the_threshold_of_shift_changes_live(engine: Engine) -> None:
    order = {"layout": "Shift", "epoch": 1, "shiftThresholdTokens": 77}
    _, state = await engine.post("/gearshift/v1/layout", order)
    assert state["details"]["shiftThresholdTokens"] == "77"


@pytest.mark.parametrize(
    ("path", "body", "reason", "message"),
    [
        (
            "layout",
            {"layout": "EP", "epoch": 1},
            "InvalidRequest",
            "layout: Input should be 'TP', 'SP', 'DP' or 'Shift'",
        ),
        ("layout", {"layout": "TP"}, "InvalidRequest", "epoch: Field required"),
        ("layout", b"{", "InvalidRequest", "Invalid JSON"),
        ("role", {"role": "Decode", "epoch": 1, "knobs": {"maxNumSeqs": 1000}}, "NotCapable", "1000 is above 256"),
        ("faults", {"faults": ["burn"]}, "InvalidRequest", "'says-yes-and-does-nothing'"),
    ],
)
async def test_bad_orders_are_refused(
    shared_engine: Engine, path: str, body: object, reason: str, message: str
) -> None:
    status, answer = await shared_engine.post(f"/gearshift/v1/{path}", body)
    assert (status, answer["reason"]) == (422, reason)
    assert message in answer["message"]
    assert (await shared_engine.state())["epoch"] == 0


async def test_a_layout_without_room_is_refused() -> None:
    async with await Engine.start("--max-model-len", "100000") as engine:
        status, answer = await engine.post("/gearshift/v1/layout", {"layout": "DP", "epoch": 1})
        assert (status, answer["reason"]) == (422, "NotCapable")
        assert answer["message"] == "layout DP is not served by this engine; served: TP, SP, Shift"


async def test_peers_from_elsewhere_are_refused_control_but_not_service() -> None:
    address = outward_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    async with await Engine.start(host="0.0.0.0") as engine:
        url = engine.url.replace("127.0.0.1", address)
        for method, path in (("GET", "engine"), ("POST", "pause"), ("POST", "layout"), ("POST", "faults")):
            async with engine.session.request(method, f"{url}/gearshift/v1/{path}") as response:
                assert (response.status, (await response.json())["reason"]) == (403, "NotLoopback")
        async with engine.session.post(f"{url}/v1/completions", json={"prompt": "Hi"}) as response:
            assert response.status == 200


def outward_address() -> str | None:
    """An address of this machine that is not on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") else address


async def test_sigterm_ends_the_process_soon_and_cuts_streams(engine: Engine) -> None:
    body = {"model": "m", "prompt": "Hi", "max_tokens": 30000, "ignore_eos": True, "stream": True}
    async with engine.session.post(engine.url + "/v1/completions", json=body) as response:
        await response.content.readline()
        engine.process.process.terminate()
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
    assert await asyncio.to_thread(engine.process.process.wait, 10) == 0
