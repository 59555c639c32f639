# SPDX-License-Identifier: Apache-2.0
"""Transitions that succeed, and the evidence that they leave."""

from gearshift.api.vocabulary import Layout, Role
from tests.functional.sidecar.conftest import MakeWorld, StartRouter
from tests.functional.sidecar.world import World


async def test_a_layout_change_is_proven_and_published(world: World, start_router: StartRouter) -> None:
    router = await start_router(world)
    before = await world.state()
    status = await world.ordered("DP")
    assert status.result == "Committed"
    assert (status.from_, status.to, status.reason) == ("TP", "DP", "Verified")
    proof = status.proof
    assert proof is not None
    assert (proof.epoch_before, proof.epoch_after, proof.ranks, proof.expected_ranks) == (0, 1, 8, 8)
    assert (proof.engine, proof.probe_tokens, proof.routers) == ("sim", 1, 1)
    assert proof.details["layout"] == "DP"
    assert (world.engine().layout, world.engine().epoch) == (Layout.DP, 1)
    after = await world.state()
    assert (after.phase, after.admitting, after.epoch, after.layout) == ("Serving", True, 1, "DP")
    phases = [state.phase for state in router.states if state.sequence > before.sequence]
    assert list(dict.fromkeys(phases)) == ["Draining", "Switching", "Verifying", "Publishing", "Serving"]
    assert all(state.admitting == (state.phase == "Serving") for state in router.states)


async def test_a_role_flip_sets_the_knobs_of_the_role(make_world: MakeWorld) -> None:
    world = await make_world(
        disaggregated=True, initial_role="Decode", role_knobs={"Prefill": {"maxNumSeqs": 4}}
    ).start()
    status = await world.ordered("Prefill", kind="Role")
    assert status.result == "Committed"
    assert (world.engine().role, world.engine().epoch) == (Role.PREFILL, 1)
    assert world.engine().knobs.max_num_seqs == 4
    back = await world.ordered("Decode", kind="Role", id_="t2")
    assert back.result == "Committed"
    assert (world.engine().role, world.engine().epoch, world.engine().knobs.max_num_seqs) == (Role.DECODE, 2, 256)


async def test_a_switch_between_processes_moves_the_port(make_world: MakeWorld) -> None:
    world = await make_world(engine="VLLM", accelerators=2, layouts=["TP", "DP"]).start()
    await world.until(lambda: "dp" in world.host.engines and world.engine("dp").paused)

    async def capable() -> bool:
        return (await world.state()).layouts == ["TP", "DP"]

    await world.until(capable)
    base = world.settings.ports.engine
    assert (await world.state()).engine_port == base
    assert (await world.ordered("DP")).result == "Committed"
    state = await world.state()
    assert (state.engine_port, state.layout, state.epoch) == (base + 1, "DP", 1)
    assert world.engine("tp").paused
    assert not world.engine("dp").paused
    assert (await world.ordered("TP", id_="t2")).result == "Committed"
    assert (world.engine("tp").paused, world.engine("dp").paused, world.engine("tp").epoch) == (False, True, 2)


async def test_a_layout_is_offered_only_once_its_engine_is_up(make_world: MakeWorld) -> None:
    world = make_world(engine="VLLM", accelerators=2, layouts=["TP", "DP"])
    world.conduct("dp").held.add("engine")
    await world.start()
    await world.until(lambda: "dp" in world.host.engines)
    assert (await world.state()).layouts == ["TP"]
    status, body = await world.order("DP")
    assert (status, body["reason"]) == (422, "NotCapable")


async def test_without_draining_the_engine_is_switched_under_its_requests(world: World) -> None:
    world.conduct().running = 3
    status = await world.ordered("DP", drain="None")
    assert status.result == "Committed"
    assert world.engine().layout is Layout.DP


async def test_the_switch_waits_for_what_routers_and_engine_still_owe(world: World, start_router: StartRouter) -> None:
    router = await start_router(world)
    router.in_flight = 1
    world.conduct().running = 1
    code, _ = await world.order("DP")
    assert code == 202
    await world.until(lambda: router.states[-1].phase == "Draining")
    router.in_flight = 0
    await router.confirm()
    beats = len(router.states)
    await world.until(lambda: len(router.states) >= beats + 2)
    assert router.states[-1].phase == "Draining"
    assert "layout" not in world.engine().calls
    world.conduct().running = 0
    assert (await world.finished()).result == "Committed"


async def test_a_late_router_does_not_keep_a_proven_pod_closed(world: World, start_router: StartRouter) -> None:
    await start_router(world)
    late = await start_router(world, "router-2")
    late.deaf_to.add("Publishing")
    status = await world.ordered("DP")
    assert status.result == "Committed"
    assert status.proof is not None
    assert status.proof.routers == 1
    assert status.seconds_by_phase["Publishing"] >= world.settings.timings.confirm


async def test_a_layout_that_the_engine_cannot_serve_is_not_offered(make_world: MakeWorld) -> None:
    world = make_world()
    world.conduct().unserved.add(Layout.DP)
    await world.start()
    assert (await world.state()).layouts == ["TP", "SP"]
    status, body = await world.order("DP")
    assert (status, body["reason"]) == (422, "NotCapable")
