# SPDX-License-Identifier: Apache-2.0
"""Transitions without proof: the pod ends in the old state, proven again, or closed."""

import pytest

from gearshift.api.vocabulary import Layout, Role
from tests.functional.sidecar.conftest import MakeWorld, StartRouter
from tests.functional.sidecar.world import World


async def unchanged(world: World) -> None:
    state = await world.state()
    assert (state.phase, state.admitting, state.epoch, state.layout) == ("Serving", True, 0, "TP")
    assert (world.engine().layout, world.engine().epoch) == (Layout.TP, 0)
    assert (await world.probe())[0] == 200


async def test_an_engine_that_says_yes_and_does_nothing_proves_nothing(world: World) -> None:
    world.conduct().lies = True
    status = await world.ordered("DP")
    assert (status.result, status.reason, status.proof) == ("RolledBack", "VerificationFailed", None)
    assert "layout is TP, not DP" in status.message
    await unchanged(world)


async def test_half_of_the_ranks_prove_neither_the_new_state_nor_the_old(world: World) -> None:
    world.conduct().held.add("layout")
    code, _ = await world.order("DP")
    assert code == 202
    await world.until(lambda: "layout" in world.engine().calls)
    world.conduct().lost_ranks = 4
    world.conduct().released.set()
    status = await world.finished()
    assert (status.result, status.reason) == ("Failed", "RollbackFailed")
    assert status.message.count("ranks is 4, not 8") == 2
    assert not (await world.state()).admitting


async def test_a_switch_that_fails_is_undone(world: World) -> None:
    world.conduct().failing.add("layout")
    status = await world.ordered("DP")
    assert (status.result, status.reason) == ("RolledBack", "SwitchFailed")
    assert "500 Broken: layout fails" in status.message
    await unchanged(world)


async def test_a_new_layout_that_makes_no_token_is_undone(make_world: MakeWorld) -> None:
    world = await make_world(engine="VLLM", accelerators=2, layouts=["TP", "DP"]).start()

    async def capable() -> bool:
        return len((await world.state()).layouts) == 2

    await world.until(capable)
    world.conduct("dp").tokens = 0
    status = await world.ordered("DP")
    assert (status.result, status.reason) == ("RolledBack", "VerificationFailed")
    assert "without a token" in status.message
    assert (world.engine("tp").paused, world.engine("dp").paused) == (False, True)
    assert (await world.state()).engine_port == world.settings.ports.engine


async def test_a_prefill_that_hands_no_kv_over_is_no_prefill(make_world: MakeWorld) -> None:
    world = await make_world(disaggregated=True, initial_role="Decode").start()
    world.conduct().transfers = False
    status = await world.ordered("Prefill", kind="Role")
    assert (status.result, status.reason) == ("RolledBack", "VerificationFailed")
    assert "without kv_transfer_params" in status.message
    assert world.engine().role is Role.DECODE


async def test_a_pod_that_cannot_go_back_is_closed(world: World, start_router: StartRouter) -> None:
    router = await start_router(world)
    world.conduct().failing.update({"layout", "completions"})
    status = await world.ordered("DP")
    assert (status.result, status.reason, status.retryable) == ("Failed", "RollbackFailed", False)
    state = await world.state()
    assert (state.phase, state.admitting) == ("Failed", False)
    assert "completions fails" in state.message
    assert (await world.probe())[0] == 503
    assert (await world.probe("/livez"))[0] == 200
    assert not any(state.admitting for state in router.states if state.phase == "Failed")
    code, body = await world.order("DP", id_="t2")
    assert (code, body["reason"]) == (409, "NotServing")


WORDS = {
    "router": "router router-1 waits for 2 requests",
    "engine": "the engine holds 1 running and 0 waiting requests",
    "deaf": "router router-1 has not confirmed",
}


@pytest.mark.parametrize("obstacle", sorted(WORDS))
async def test_a_drain_that_takes_too_long_is_given_up(world: World, start_router: StartRouter, obstacle: str) -> None:
    router = await start_router(world)
    router.in_flight = 2 if obstacle == "router" else 0
    router.deaf_to = {"Draining"} if obstacle == "deaf" else set()
    world.conduct().running = 1 if obstacle == "engine" else 0
    status = await world.ordered("DP", drainTimeout="100ms")
    assert (status.result, status.reason, status.retryable) == ("RolledBack", "DrainTimeout", True)
    assert WORDS[obstacle] in status.message
    assert "layout" not in world.engine().calls
    await unchanged(world)


async def test_a_router_that_is_gone_does_not_block_a_drain_for_long(world: World, start_router: StartRouter) -> None:
    router = await start_router(world)
    router.in_flight = 5
    await router.confirm()
    await router.stop()
    assert (await world.ordered("DP")).result == "Committed"
