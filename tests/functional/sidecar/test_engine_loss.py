# SPDX-License-Identifier: Apache-2.0
"""An engine that dies, hangs, or never comes up: nothing is admitted meanwhile, and the committed state comes back."""

from dataclasses import replace

import pytest

from gearshift.api.vocabulary import Layout
from tests.functional.sidecar.conftest import MakeWorld, StartRouter
from tests.functional.sidecar.world import TIMINGS, World


async def serves_again(world: World, layout: Layout, epoch: int) -> None:
    state = await world.until_phase("Serving")
    assert (state.admitting, state.layout, state.epoch) == (True, layout, epoch)
    assert (world.engine().layout, world.engine().epoch) == (layout, epoch)
    assert world.host.starts == ["sim", "sim"]


async def test_an_engine_that_dies_while_serving_comes_back_as_it_was(world: World, start_router: StartRouter) -> None:
    assert (await world.ordered("DP")).result == "Committed"
    router = await start_router(world)
    world.conduct().held.add("completions")
    await world.host.kill("sim")
    lost = await world.until_phase("Starting")
    assert not lost.admitting
    assert "exited with -9; last lines:\nsim says goodbye" in lost.message
    assert (await world.probe())[0] == 503
    world.conduct().released.set()
    await serves_again(world, Layout.DP, 1)
    await world.until(lambda: router.states[-1].phase == "Serving")
    assert all(state.admitting == (state.phase == "Serving") for state in router.states)
    assert (await world.probe())[0] == 200


async def in_draining(world: World) -> None:
    world.conduct().running = 1
    await world.order("DP")


async def in_switching(world: World) -> None:
    world.conduct().held.add("layout")
    await world.order("DP")
    await world.until(lambda: "layout" in world.engine().calls)


async def in_verifying(world: World) -> None:
    world.conduct().held.add("completions")
    await world.order("DP")


async def in_rolling_back(world: World) -> None:
    world.conduct().failing.add("layout")
    world.conduct().held.add("completions")
    await world.order("DP")


REACH = {
    "Draining": in_draining,
    "Switching": in_switching,
    "Verifying": in_verifying,
    "RollingBack": in_rolling_back,
}


@pytest.mark.parametrize("phase", sorted(REACH))
async def test_an_engine_that_dies_before_the_proof_comes_back_in_the_old_state(world: World, phase: str) -> None:
    await REACH[phase](world)
    await world.until_phase(phase)
    conduct = world.conduct()
    conduct.running, conduct.held, conduct.failing = 0, set(), set()
    await world.host.kill("sim")
    status = await world.finished()
    assert status.result == "RolledBack"
    assert status.reason == ("SwitchFailed" if phase == "RollingBack" else "EngineLost")
    assert status.proof is None
    await serves_again(world, Layout.TP, 0)


async def test_an_engine_that_dies_after_the_proof_comes_back_in_the_new_state(
    make_world: MakeWorld, start_router: StartRouter
) -> None:
    world = await make_world(timings=replace(TIMINGS, confirm=30.0)).start()
    router = await start_router(world)
    router.deaf_to.add("Publishing")
    await world.order("DP")
    await world.until_phase("Publishing")
    await world.host.kill("sim")
    status = await world.finished()
    assert status.result == "Committed"
    assert status.proof is not None
    await serves_again(world, Layout.DP, 1)


async def test_an_engine_that_dies_on_the_switch_itself(make_world: MakeWorld) -> None:
    """The connection breaks before the host reports the exit: that must not close the pod."""
    world = await make_world().start()
    await in_switching(world)
    engine = world.engine()
    await engine.stop()
    await world.until_phase("RollingBack")
    world.conduct().held = set()
    await world.host.kill("sim")
    assert (await world.finished()).result == "RolledBack"
    await serves_again(world, Layout.TP, 0)


async def test_the_loss_of_a_paused_engine_takes_nothing_but_its_layout(make_world: MakeWorld) -> None:
    world = await make_world(engine="VLLM", accelerators=2, layouts=["TP", "DP"]).start()

    async def layouts(count: int) -> bool:
        return len((await world.state()).layouts) == count

    await world.until(lambda: layouts(2))
    world.conduct("dp").dies_at_start = True
    await world.host.kill("dp")
    await world.until(lambda: layouts(1))
    state = await world.state()
    assert (state.phase, state.admitting) == ("Serving", True)
    world.conduct("dp").dies_at_start = False
    await world.until(lambda: layouts(2))
    assert world.engine("dp").paused


async def test_a_crash_loop_is_visible_and_backs_off(make_world: MakeWorld) -> None:
    world = make_world()
    world.conduct().dies_at_start = True
    await world.start(until="Starting")
    await world.until(lambda: len(world.host.starts) > 3)
    state = await world.state()
    assert (state.phase, state.admitting) == ("Starting", False)
    assert "exited with 1; last lines:\nsim says goodbye" in state.message
    assert (await world.probe("/startupz"))[0] == 200
    _, text = await world.probe("/metrics")
    restarts = next(line for line in text.splitlines() if line.startswith("gearshift_sidecar_engine_restarts_total{"))
    assert float(restarts.split()[-1]) >= 2
    world.conduct().dies_at_start = False
    assert (await world.until_phase("Serving")).admitting


async def test_an_engine_that_stops_answering_is_killed_and_started_again(make_world: MakeWorld) -> None:
    quick = replace(TIMINGS, hang=0.1, engine_call=0.05)
    world = await make_world(timings=quick).start()
    world.conduct().held.add("engine")
    await world.until(lambda: len(world.host.starts) == 2)
    world.conduct().held.clear()
    await serves_again(world, Layout.TP, 0)


async def test_an_engine_that_never_answers_is_started_again_and_the_state_says_why(make_world: MakeWorld) -> None:
    world = make_world(timings=replace(TIMINGS, start=0.2, engine_call=0.05))
    world.conduct().held.add("engine")
    await world.start(until="Starting")
    await world.until(lambda: len(world.host.starts) == 2)
    message = (await world.state()).message
    assert "engine sim gave no answer within 0.2 s of its start: engine sim /gearshift/v1/engine: no answer" in message
    assert "exited with -9; last lines:\nsim says goodbye" in message
    world.conduct().held.clear()
    assert (await world.until_phase("Serving")).admitting


async def test_an_engine_that_cannot_be_killed_because_its_container_restarts_is_started_again(
    make_world: MakeWorld,
) -> None:
    world = await make_world(timings=replace(TIMINGS, hang=0.1, engine_call=0.05)).start()
    world.host.refuse_signals = True
    world.conduct().held.add("engine")
    await world.until(lambda: world.host.refused)
    world.conduct().held.clear()
    await world.host.stop()
    await world.until_phase("Starting")
    await world.host.start()
    await serves_again(world, Layout.TP, 0)


async def test_an_engine_is_not_ready_before_it_has_made_a_token(make_world: MakeWorld) -> None:
    world = make_world()
    world.conduct().tokens = 0
    await world.start(until="Starting")
    await world.until(lambda: world.host.starts == ["sim", "sim"])
    assert (await world.probe())[0] == 503
    assert not (await world.state()).admitting
    world.conduct().tokens = 1
    await world.until_phase("Serving")
    assert (await world.probe())[0] == 200


async def test_an_engine_container_that_restarts_gets_its_engine_back(world: World) -> None:
    assert (await world.ordered("SP")).result == "Committed"
    await world.host.stop()
    await world.until_phase("Starting")
    await world.host.start()
    await serves_again(world, Layout.SP, 1)


async def test_a_pod_that_cannot_be_started_says_why(make_world: MakeWorld) -> None:
    world = await make_world(engine="VLLM", engine_args=["--port", "1"], layouts=["TP"]).start(until="Failed")
    state = await world.state()
    assert "engineArgs: --port is set by Gearshift" in state.message
    assert world.host.starts == []
    assert (await world.probe())[0] == 503
