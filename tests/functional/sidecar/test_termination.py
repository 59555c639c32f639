# SPDX-License-Identifier: Apache-2.0
"""The end of a pod: unpublish, drain within the grace period, and only then let the engines be stopped."""

from dataclasses import replace
from functools import partial

import pytest

from gearshift.api.vocabulary import Layout
from tests.functional.sidecar.conftest import MakeWorld, StartRouter
from tests.functional.sidecar.world import TIMINGS, World


async def test_requests_in_flight_are_finished_before_the_engines_end(world: World, start_router: StartRouter) -> None:
    router = await start_router(world)
    router.in_flight = 1
    world.conduct().running = 1
    world.host.terminate(30.0)
    await world.until(lambda: router.states[-1].phase == "Terminating")
    assert not router.states[-1].admitting
    router.in_flight = 0
    await router.confirm()
    assert world.host.shutdowns == []
    world.conduct().running = 0
    await world.until(lambda: world.host.shutdowns)
    assert world.host.shutdowns == [world.settings.timings.shutdown_grace]


async def test_kv_that_others_have_still_to_pull_is_kept_until_they_have(make_world: MakeWorld) -> None:
    """Also by an engine that a switch has paused since."""
    world = await make_world(engine="VLLM", accelerators=2, layouts=["TP", "DP"]).start()
    await world.until(lambda: world.host.starts == ["tp", "dp"] and world.engine("dp").paused)
    assert (await world.ordered("DP")).result == "Committed"
    for name in ("tp", "dp"):
        world.conduct(name).kv_held = 1
    world.host.terminate(30.0)
    await world.until_phase("Terminating")
    for name in ("dp", "tp"):
        conduct = world.conduct(name)
        polls = conduct.asked
        await world.until(partial(lambda conduct, polls: conduct.asked > polls + 1, conduct, polls))
        assert world.host.shutdowns == []
        conduct.kv_held = 0
    await world.until(lambda: world.host.shutdowns)


async def test_kv_that_nobody_pulls_is_not_waited_for_as_long_as_the_grace_period(make_world: MakeWorld) -> None:
    """A probe of a prefill pod leaves some behind."""
    world = await make_world(timings=replace(TIMINGS, kv_pull=0.05)).start()
    world.conduct().kv_held = 1
    world.host.terminate(3600.0)
    await world.until(lambda: world.host.shutdowns)


async def test_kv_that_nobody_pulls_does_not_hold_a_role_change_up(make_world: MakeWorld) -> None:
    world = await make_world(disaggregated=True).start()
    world.conduct().kv_held = 1
    assert (await world.ordered("Prefill", kind="Role")).result == "Committed"


async def test_the_grace_period_bounds_the_drain(world: World) -> None:
    world.conduct().running = 1
    world.host.terminate(2.05)
    await world.until(lambda: world.host.shutdowns)
    assert (await world.state()).phase == "Terminating"


@pytest.mark.parametrize("phase", ["Draining", "Verifying", "Failed"])
async def test_a_pod_can_end_in_any_phase(world: World, phase: str) -> None:
    if phase == "Draining":
        world.conduct().running = 1
    elif phase == "Verifying":
        world.conduct().held.add("completions")
    else:
        world.conduct().failing.update({"layout", "completions"})
    await world.order("DP")
    await world.until_phase(phase)
    world.host.terminate(30.0)
    await world.until_phase("Terminating")
    world.conduct().running = 0
    await world.until(lambda: world.host.shutdowns)
    status = await world.finished()
    assert status.result == ("Failed" if phase == "Failed" else "RolledBack")
    if phase != "Failed":
        assert status.reason == "PodTerminating"


async def test_a_terminating_pod_takes_no_orders_and_starts_no_engine(world: World) -> None:
    world.conduct().running = 1
    world.host.terminate(30.0)
    await world.until_phase("Terminating")
    code, body = await world.order("DP")
    assert (code, body["reason"]) == (409, "NotServing")
    await world.host.kill("sim")
    await world.until(lambda: world.host.shutdowns)
    assert world.host.starts == ["sim"]


async def test_a_sidecar_that_restarts_during_the_end_still_ends_it(world: World) -> None:
    world.conduct().running = 1
    world.host.terminate(30.0)
    await world.until_phase("Terminating")
    await world.stop_sidecar()
    await world.start_sidecar()
    await world.until_phase("Terminating")
    world.conduct().running = 0
    await world.until(lambda: world.host.shutdowns)


async def test_the_end_of_the_sidecar_alone_leaves_the_engine_running(world: World) -> None:
    await world.stop_sidecar()
    assert world.engine().layout is Layout.TP
    assert world.host.shutdowns == []
