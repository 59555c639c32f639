# SPDX-License-Identifier: Apache-2.0
"""Faults to rehearse: what each looks like from outside, and that it can be lifted."""

import asyncio

import aiohttp
import pytest

from tests.functional.sim.sim_process import Engine, SimProcess, eventually


async def set_faults(engine: Engine, *faults: str) -> None:
    status, answer = await engine.post("/gearshift/v1/faults", {"faults": list(faults)})
    assert (status, answer) == (200, {"faults": sorted(faults)})


async def test_says_yes_and_does_nothing(engine: Engine) -> None:
    await set_faults(engine, "says-yes-and-does-nothing")
    for path, order in (("layout", {"layout": "DP", "epoch": 1}), ("role", {"role": "Decode", "epoch": 1})):
        status, answer = await engine.post(f"/gearshift/v1/{path}", order)
        assert (status, answer["epoch"], answer[path]) == (200, 1, order[path])
    state = await engine.state()
    assert (state["layout"], state["role"], state["epoch"]) == ("TP", "Unified", 0)


async def test_half_of_the_ranks_switch_until_the_next_sound_switch(engine: Engine) -> None:
    await set_faults(engine, "switch-half-of-ranks")
    _, state = await engine.post("/gearshift/v1/layout", {"layout": "DP", "epoch": 1})
    assert (state["layout"], state["ranks"], state["worldSize"]) == ("DP", 2, 4)
    await set_faults(engine)
    _, state = await engine.post("/gearshift/v1/layout", {"layout": "TP", "epoch": 0})
    assert (state["ranks"], state["epoch"]) == (4, 0)


async def test_a_switch_hangs_until_the_fault_is_lifted_even_if_the_client_leaves(engine: Engine) -> None:
    await set_faults(engine, "hang-on-switch")
    impatient = aiohttp.ClientTimeout(total=0.2)
    url, order = f"{engine.url}/gearshift/v1/layout", {"layout": "DP", "epoch": 1}
    with pytest.raises(TimeoutError):
        await engine.session.post(url, json=order, timeout=impatient)
    state = await engine.state()
    assert (state["layout"], state["paused"]) == ("TP", True)
    await set_faults(engine)

    async def has_switched() -> bool:
        state = await engine.state()
        return bool((state["layout"], state["epoch"], state["paused"]) == ("DP", 1, False))

    await eventually(has_switched)
    assert await engine.text("Hi", max_tokens=3)


async def test_a_switch_kills_the_process(engine: Engine) -> None:
    await set_faults(engine, "die-on-switch")
    with pytest.raises(aiohttp.ClientError):
        await engine.post("/gearshift/v1/layout", {"layout": "DP", "epoch": 1})
    assert await asyncio.to_thread(engine.process.process.wait, 10) == 1
    assert "die-on-switch" in engine.process.log


async def test_probes_fail_while_health_is_well(engine: Engine) -> None:
    await set_faults(engine, "fail-probe")
    status, answer = await engine.post("/v1/completions", {"prompt": "Hi"})
    assert (status, answer["error"]["type"]) == (500, "InternalServerError")
    assert (await engine.get("/health"))[0] == 200
    await set_faults(engine)
    assert await engine.text("Hi", max_tokens=3)


async def test_probes_fail_after_a_switch_and_recover_with_its_rollback(engine: Engine) -> None:
    await set_faults(engine, "fail-probe-after-switch")
    assert await engine.text("Hi", max_tokens=3)
    await engine.post("/gearshift/v1/layout", {"layout": "DP", "epoch": 1})
    assert (await engine.post("/v1/completions", {"prompt": "Hi"}))[0] == 500
    await engine.post("/gearshift/v1/layout", {"layout": "TP", "epoch": 0})
    assert await engine.text("Hi", max_tokens=3)


async def test_nothing_listens_before_the_start_up_time_is_over() -> None:
    slow = SimProcess("--startup", "1m", "--fault", "slow-start")
    try:
        slow.process.terminate()
        assert await asyncio.to_thread(slow.process.wait, 10) in {0, -15}
        assert "serving" not in slow.log
    finally:
        slow.stop()


async def test_a_fault_can_be_there_from_the_start() -> None:
    async with await Engine.start("--fault", "fail-probe") as engine:
        assert (await engine.get("/gearshift/v1/faults"))[1] == {"faults": ["fail-probe"]}
        assert (await engine.post("/v1/completions", {"prompt": "Hi"}))[0] == 500
