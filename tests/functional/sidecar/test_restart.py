# SPDX-License-Identifier: Apache-2.0
"""A sidecar that restarts: it finds its engines, remembers its word, and settles what was in flight."""

import json
from dataclasses import replace

import pytest

from gearshift.api.vocabulary import Layout
from tests.functional.sidecar.conftest import MakeWorld, StartRouter
from tests.functional.sidecar.world import DEADLINE_SECONDS, TIMINGS, World


async def test_running_engines_are_found_and_left_alone(world: World) -> None:
    assert (await world.ordered("DP", fencingToken=9)).result == "Committed"
    engine, calls = world.engine(), list(world.engine().calls)
    before = await world.state()
    await world.stop_sidecar()
    await world.start_sidecar()
    state = await world.state()
    assert (state.phase, state.admitting) == ("Serving", True)
    assert (state.epoch, state.layout, state.fencing_token) == (1, Layout.DP, 9)
    assert state.sequence > before.sequence
    assert world.engine() is engine
    assert world.host.starts == ["sim"]
    assert engine.calls == [*calls, "completions"]
    assert (await world.call("GET", "/v1/transitions/t1"))[1]["result"] == "Committed"


async def test_a_drain_waits_for_routers_that_have_not_come_back_to_a_restarted_sidecar(
    make_world: MakeWorld, start_router: StartRouter
) -> None:
    """They go on sending by the last state that they know."""
    world = await make_world(timings=replace(TIMINGS, router_linger=DEADLINE_SECONDS)).start()
    await world.stop_sidecar()
    await world.start_sidecar()
    await world.order("DP", drainTimeout="500ms")
    status = await world.finished()
    assert (status.result, status.reason) == ("RolledBack", "DrainTimeout")
    assert "routers may still come back" in status.message
    assert "pause" not in world.engine().calls[1:]


async def test_a_first_sidecar_waits_for_nobody(make_world: MakeWorld) -> None:
    world = await make_world(timings=replace(TIMINGS, router_linger=DEADLINE_SECONDS)).start()
    assert (await world.ordered("DP")).result == "Committed"


async def test_a_switch_that_the_engine_had_carried_out_is_verified_and_published(world: World) -> None:
    world.conduct().held.add("completions")
    await world.order("DP")
    await world.until_phase("Verifying")
    await world.stop_sidecar()
    world.conduct().held.clear()
    await world.start_sidecar()
    status = await world.finished()
    assert status.result == "Committed"
    assert status.proof is not None
    state = await world.until_phase("Serving")
    assert (state.epoch, state.layout) == (1, Layout.DP)


@pytest.mark.parametrize("held", ["layout", "nothing"])
async def test_a_switch_that_the_engine_had_not_carried_out_is_undone(world: World, held: str) -> None:
    if held == "layout":
        world.conduct().held.add("layout")
    else:
        world.conduct().running = 1
    await world.order("DP")
    await world.until_phase("Switching" if held == "layout" else "Draining")
    await world.stop_sidecar()
    world.conduct().held.clear()
    world.conduct().running = 0
    await world.start_sidecar()
    status = await world.finished()
    assert (status.result, status.reason) == ("RolledBack", "SidecarRestarted")
    state = await world.until_phase("Serving")
    assert (state.epoch, state.layout, world.engine().layout) == (0, Layout.TP, Layout.TP)


async def test_a_published_switch_stays_committed(world: World, start_router: StartRouter) -> None:
    router = await start_router(world)
    router.deaf_to.add("Publishing")
    await world.order("DP")
    await world.until(lambda: router.states[-1].phase == "Publishing")
    await world.stop_sidecar()
    await world.start_sidecar()
    assert (await world.finished()).result == "Committed"
    assert (await world.until_phase("Serving")).layout == Layout.DP


async def test_a_closed_pod_stays_closed(world: World) -> None:
    world.conduct().failing.update({"layout", "completions"})
    assert (await world.ordered("DP")).result == "Failed"
    world.conduct().failing.clear()
    await world.stop_sidecar()
    await world.start_sidecar()
    state = await world.state()
    assert (state.phase, state.admitting) == ("Failed", False)
    assert (await world.probe())[0] == 503


async def test_an_engine_that_changed_while_nobody_watched_is_set_right(world: World) -> None:
    await world.stop_sidecar()
    await world.host.kill("sim")
    await world.start_sidecar()
    state = await world.until_phase("Serving")
    assert (state.epoch, world.host.starts) == (0, ["sim", "sim"])


async def test_an_unreadable_state_file_is_kept_and_the_pod_begins_anew(make_world: MakeWorld) -> None:
    world = make_world()
    world.settings.state_file.write_text('{"uid": "uid-0", "phase"')
    await world.start()
    assert world.settings.state_file.with_name("state.json.bad").exists()
    assert json.loads(world.settings.state_file.read_text())["phase"] == "Serving"


async def test_the_state_file_of_another_pod_is_not_believed(make_world: MakeWorld) -> None:
    first = await make_world().start()
    assert (await first.ordered("DP")).result == "Committed"
    text = first.settings.state_file.read_text().replace("uid-0", "uid-9")
    await first.stop_sidecar()
    await first.host.kill("sim")
    first.settings.state_file.write_text(text)
    await first.start_sidecar()
    assert (await first.until_phase("Serving")).epoch == 0
