# SPDX-License-Identifier: Apache-2.0
"""Orders to an engine of several cores: all or an error, never a guess."""

import asyncio
from typing import Any

import pytest

from gearshift.api.engine import LayoutRequest, PauseRequest, RoleKnobs, RoleRequest
from gearshift.api.vocabulary import Layout, Role
from gearshift.engine.compat.v0_32 import Compat032
from gearshift.engine.control import Control, ControlError
from gearshift.engine.core import CoreUtilities
from gearshift.engine.reports import Shape
from tests.unit.engine.fake_core import FakeCore


class FakeClient:
    """The API server's client of some cores, which carries calls as vLLM's does."""

    def __init__(self, cores: list[FakeCore]) -> None:
        self.cores = cores
        self.utilities = CoreUtilities(Compat032())
        self.stuck: set[str] = set()
        self.slow: set[str] = set()  # methods that all cores but the first are too busy for

    async def call_utility_all_async(self, method: str, *args: Any) -> list[Any]:
        if method in self.stuck:
            await asyncio.Event().wait()
        if method in self.slow:
            self._one(self.cores[0], method, *args)
            await asyncio.Event().wait()
        return [self._one(core, method, *args) for core in self.cores]

    def _one(self, core: FakeCore, method: str, *args: Any) -> Any:
        if method == "resume_scheduler":
            return core.resume_scheduler()
        if method == "gearshift_pause":
            return self.utilities.pause(core)
        if method == "gearshift_state":
            return self.utilities.state(core, fresh=args[0])
        if method == "gearshift_epoch":
            return self.utilities.set_epoch(core, *args)
        if method == "gearshift_layout":
            return self.utilities.set_layout(core, *args)
        assert method == "gearshift_role"
        return self.utilities.set_role(core, *args)


def build(cores: int) -> tuple[Control, FakeClient]:
    client = FakeClient([FakeCore(running=2 + index) for index in range(cores)])
    return Control(client, Compat032(), Shape(cores, 2 * cores, "0.32.0")), client


async def test_one_core_is_tensor_parallel_and_several_are_data_parallel() -> None:
    one, two = await build(1)[0].state(), await build(2)[0].state()
    assert (one.layout, one.layouts, one.ranks, one.world_size) == (Layout.TP, [Layout.TP], 2, 2)
    assert (two.layout, two.layouts, two.ranks, two.world_size) == (Layout.DP, [Layout.DP], 4, 4)
    assert (two.running, two.waiting, two.details["cores"]) == (5, 2, "2")


async def test_kv_usage_is_that_of_the_fullest_core() -> None:
    control, client = build(2)
    client.cores[1].scheduler.kv_cache_manager.usage = 0.75
    state = await control.state()
    assert (state.kv_usage, state.details["kvUsageMean"]) == (0.75, "0.5000")


async def test_pause_and_resume_reach_all_cores() -> None:
    control, client = build(2)
    assert (await control.pause(PauseRequest())).paused
    assert [core.paused for core in client.cores] == [True, True]
    assert not (await control.resume()).paused
    assert [core.paused for core in client.cores] == [False, False]


async def test_a_pause_that_does_not_end_in_time_is_taken_back() -> None:
    control, client = build(1)
    client.cores[0].batch_queue = [object()]
    with pytest.raises(ControlError, match=r"step in flight did not end within 0\.01 s; scheduling goes on") as error:
        await control.pause(PauseRequest(timeout_seconds=0.01))
    assert (error.value.status, error.value.reason) == (504, "Timeout")
    assert not client.cores[0].paused


async def test_a_pause_that_one_core_is_too_busy_for_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gearshift.engine.control.CALL_TIMEOUT_SECONDS", 0.01)
    control, client = build(2)
    client.slow.add("gearshift_pause")
    with pytest.raises(ControlError, match=r"gearshift_pause: not all cores answered within 0\.01 s"):
        await control.pause(PauseRequest(timeout_seconds=5.0))
    assert [core.paused for core in client.cores] == [False, False]


async def test_a_core_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gearshift.engine.control.CALL_TIMEOUT_SECONDS", 0.01)
    control, client = build(1)
    client.stuck.add("gearshift_state")
    with pytest.raises(ControlError, match=r"gearshift_state: not all cores answered within 0\.01 s") as error:
        await control.state()
    assert (error.value.status, error.value.reason) == (504, "Timeout")


async def test_a_role_is_read_back_from_every_core() -> None:
    control, _ = build(2)
    state = await control.role(RoleRequest(role=Role.PREFILL, epoch=7, knobs=RoleKnobs(max_num_seqs=4)))
    assert (state.role, state.epoch, state.knobs.max_num_seqs, state.ranks) == (Role.PREFILL, 7, 4, 4)


async def test_a_setting_out_of_range_is_refused() -> None:
    control, _ = build(2)
    with pytest.raises(ControlError, match=r"knobs\.maxNumSeqs: 99 is above 16") as error:
        await control.role(RoleRequest(role=Role.PREFILL, epoch=7, knobs=RoleKnobs(max_num_seqs=99)))
    assert (error.value.status, error.value.reason) == (422, "NotCapable")
    assert (await control.state()).epoch == 0


async def test_the_epoch_is_the_lowest_and_disagreement_is_told() -> None:
    control, client = build(2)
    client.utilities.set_epoch(client.cores[1], 9)
    state = await control.state()
    assert (state.epoch, state.details["coresDisagreeOn"]) == (0, "epoch")


async def test_a_core_that_stays_paused_is_no_proof() -> None:
    control, client = build(2)
    client.cores[1].is_scheduler_paused = lambda: True  # type: ignore[method-assign]
    with pytest.raises(ControlError, match="paused is not False on all of 2 cores") as error:
        await control.resume()
    assert (error.value.status, error.value.reason) == (500, "NotProven")


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (LayoutRequest(layout=Layout.SP, epoch=1), "layout: this engine serves TP only, not SP"),
        (LayoutRequest(layout=Layout.DP, epoch=1), "layout: this engine serves TP only, not DP"),
        (LayoutRequest(layout=Layout.TP, epoch=1, shift_threshold_tokens=9), "shiftThresholdTokens: only layout Shift"),
    ],
)
async def test_a_layout_that_the_process_does_not_have_is_refused(request_: LayoutRequest, text: str) -> None:
    control, _ = build(1)
    with pytest.raises(ControlError, match=text) as error:
        await control.layout(request_)
    assert (error.value.status, error.value.reason) == (422, "NotCapable")


async def test_its_own_layout_takes_the_epoch() -> None:
    control, _ = build(1)
    assert (await control.layout(LayoutRequest(layout=Layout.TP, epoch=3))).epoch == 3


def build_shift(threshold: int = 96, floor: int = 0) -> tuple[Control, FakeClient]:
    client = FakeClient([FakeCore().shift(threshold, floor)])
    return Control(client, Compat032(), Shape(1, 2, "0.32.0", shift=True)), client


async def test_a_shift_engine_says_its_layouts_and_its_threshold() -> None:
    control, _ = build_shift(floor=32)
    state = await control.state()
    assert (state.layout, state.layouts) == (Layout.SHIFT, [Layout.SHIFT, Layout.TP])
    assert (state.shift_threshold_tokens, state.shift_floor_tokens) == (96, 32)
    assert (state.details["stepsTP"], state.details["stepsSP"], state.details["sequenceParallelSize"]) == (
        "5",
        "2",
        "2",
    )


async def test_a_threshold_changes_live_and_is_read_back() -> None:
    control, client = build_shift()
    state = await control.layout(LayoutRequest(layout=Layout.SHIFT, epoch=3, shift_threshold_tokens=64))
    assert (state.layout, state.epoch, state.shift_threshold_tokens, state.ranks) == (Layout.SHIFT, 3, 64, 2)
    assert client.cores[0].thresholds == {0: 64, 1: 64}
    state = await control.layout(LayoutRequest(layout=Layout.TP, epoch=4))
    assert (state.layout, state.shift_threshold_tokens) == (Layout.TP, None)


async def test_a_threshold_below_the_graphs_is_refused() -> None:
    control, client = build_shift(floor=32)
    with pytest.raises(ControlError, match="shiftThresholdTokens: 31 is below 32") as error:
        await control.layout(LayoutRequest(layout=Layout.SHIFT, epoch=3, shift_threshold_tokens=31))
    assert (error.value.status, error.value.reason) == (422, "NotCapable")
    assert client.cores[0].thresholds == {0: 96, 1: 96}


async def test_ranks_that_keep_their_threshold_are_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    control, client = build_shift()
    deaf = client.cores[0].collective_rpc
    monkeypatch.setattr(
        client.cores[0], "collective_rpc", lambda method, timeout, args=(): [] if args else deaf(method, timeout)
    )
    with pytest.raises(ControlError, match="the ranks say layout Shift with threshold 96, not Shift 64") as error:
        await control.layout(LayoutRequest(layout=Layout.SHIFT, epoch=3, shift_threshold_tokens=64))
    assert (error.value.status, error.value.reason) == (500, "NotProven")
