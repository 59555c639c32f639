# SPDX-License-Identifier: Apache-2.0
"""What the utilities inside an EngineCore answer and set."""

import pytest

from gearshift.engine.compat.base import Compat
from gearshift.engine.compat.v0_26 import Compat026
from gearshift.engine.compat.v0_32 import Compat032
from gearshift.engine.core import CoreUtilities
from tests.unit.engine.fake_core import FakeCore

BOTH = pytest.mark.parametrize("compat", [Compat026(), Compat032()], ids=lambda compat: compat.minor)
START = {"maxNumBatchedTokens": 512, "maxNumSeqs": 16, "longPrefillTokenThreshold": 0}


@BOTH
def test_the_state_at_the_start(compat: Compat) -> None:
    state = CoreUtilities(compat).state(FakeCore(), fresh=True)
    assert state == {
        "role": "Unified",
        "epoch": 0,
        "paused": False,
        "ranks": 2,
        "world_size": 2,
        "knobs": START,
        "running": 3,
        "waiting": 1,
        "kv_usage": 0.25,
        "kv_held": 0,
        "layout": None,
        "shift": None,
    }


@BOTH
def test_a_role_sets_the_scheduler_and_a_later_one_forgets_it(compat: Compat) -> None:
    core, utilities = FakeCore(), CoreUtilities(compat)
    prefill = {"maxNumBatchedTokens": 128, "maxNumSeqs": 4, "longPrefillTokenThreshold": 64}
    report = utilities.set_role(core, "Prefill", 5, prefill)
    assert (report["role"], report["epoch"], report["knobs"]) == ("Prefill", 5, prefill)
    assert core.scheduler.max_num_scheduled_tokens == 128
    assert core.scheduler.scheduler_config.long_prefill_token_threshold == 64
    report = utilities.set_role(core, "Decode", 6, {"maxNumSeqs": 8})
    assert (report["role"], report["epoch"], report["knobs"]) == ("Decode", 6, {**START, "maxNumSeqs": 8})


@BOTH
def test_a_refused_role_changes_nothing(compat: Compat) -> None:
    core, utilities = FakeCore(), CoreUtilities(compat)
    before = utilities.state(core, fresh=True)
    report = utilities.set_role(core, "Prefill", 5, {"maxNumBatchedTokens": 100, "maxNumSeqs": 17})
    assert report == {"refused": "knobs.maxNumSeqs: 17 is above 16, which the engine was started with"}
    assert utilities.state(core, fresh=True) == before


def test_admission_of_0_26_never_falls_below_what_runs() -> None:
    core = FakeCore(running=3)
    report = CoreUtilities(Compat026()).set_role(core, "Decode", 1, {"maxNumSeqs": 2, "maxNumBatchedTokens": 7})
    assert report == {"refused": "knobs.maxNumSeqs: 2 is below the 3 requests that run: drain first"}
    assert (core.scheduler.max_num_running_reqs, core.scheduler.max_num_scheduled_tokens) == (16, 512)


def test_admission_of_0_32_leaves_the_size_of_the_batch_alone() -> None:
    core = FakeCore(running=3)
    CoreUtilities(Compat032()).set_role(core, "Decode", 1, {"maxNumSeqs": 2})
    assert (core.scheduler.max_num_active_reqs, core.scheduler.max_num_running_reqs) == (2, 16)


@BOTH
def test_without_chunked_prefill_the_budget_is_fixed(compat: Compat) -> None:
    report = CoreUtilities(compat).set_role(FakeCore(chunked=False), "Prefill", 1, {"maxNumBatchedTokens": 64})
    assert "maxNumBatchedTokens: without chunked prefill" in report["refused"]


def test_paused_means_that_no_step_is_in_flight() -> None:
    core, utilities = FakeCore(), CoreUtilities(Compat032())
    core.batch_queue = [object()]
    assert utilities.pause(core)["paused"] is False
    core.batch_queue.clear()
    assert utilities.state(core, fresh=False)["paused"] is True


def test_kv_that_others_have_yet_to_pull_is_told() -> None:
    core = FakeCore(running=3)
    core.scheduler.requests["ended"] = object()
    assert CoreUtilities(Compat032()).state(core, fresh=False)["kv_held"] == 1


def test_only_ranks_that_answered_are_counted_once_each() -> None:
    core = FakeCore(ranks=4)
    core.answers = [0, 1, 1]
    state = CoreUtilities(Compat032()).state(core, fresh=True)
    assert (state["ranks"], state["world_size"]) == (2, 4)


def test_polling_does_not_ask_the_ranks_each_time_but_proof_does() -> None:
    core, utilities = FakeCore(), CoreUtilities(Compat032())
    for _ in range(5):
        utilities.state(core, fresh=False)
    assert core.asked == 1
    utilities.set_epoch(core, 3)
    assert core.asked == 2


def test_cores_of_one_process_have_memories_of_their_own() -> None:
    utilities, one, other = CoreUtilities(Compat032()), FakeCore(), FakeCore()
    utilities.set_epoch(one, 4)
    assert [utilities.state(core, fresh=False)["epoch"] for core in (one, other)] == [4, 0]


def test_a_shift_engine_takes_layouts_by_its_threshold() -> None:
    core, utilities = FakeCore().shift(96), CoreUtilities(Compat032())
    assert utilities.state(core, fresh=False)["layout"] == "Shift"
    for layout, asked, threshold in (("TP", None, 2**31 - 1), ("SP", None, 0), ("Shift", 64, 64), ("Shift", None, 96)):
        report = utilities.set_layout(core, layout, 7, asked)
        assert (report["layout"], report["epoch"], report["ranks"]) == (layout, 7, 2)
        assert (core.thresholds, report["shift"]["thresholdTokens"]) == ({0: threshold, 1: threshold}, threshold)


def test_an_engine_without_a_second_tree_has_no_threshold() -> None:
    core = FakeCore()
    refused = CoreUtilities(Compat032()).set_layout(core, "Shift", 7, 64)
    assert refused == {"refused": "layout: this engine has no sequence-parallel tree for Shift"}


@pytest.mark.parametrize(
    ("layout", "threshold", "words"),
    [
        ("DP", None, "layout: this engine serves Shift, TP only, not DP"),
        ("SP", None, "layout: this engine serves Shift, TP only, not SP"),
        ("TP", 64, "shiftThresholdTokens: only layout Shift has a threshold, not TP"),
        ("Shift", 31, "shiftThresholdTokens: 31 is below 32, the largest graph that was captured"),
    ],
)
def test_a_refused_layout_changes_nothing(layout: str, threshold: int | None, words: str) -> None:
    core, utilities = FakeCore().shift(96, floor=32), CoreUtilities(Compat032())
    assert utilities.set_layout(core, layout, 7, threshold) == {"refused": words}
    state = utilities.state(core, fresh=True)
    assert (state["layout"], state["epoch"], core.thresholds) == ("Shift", 0, {0: 96, 1: 96})


def test_a_rank_of_another_threshold_is_not_counted() -> None:
    core = FakeCore(ranks=4).shift(96)
    core.thresholds[2] = 64
    state = CoreUtilities(Compat032()).state(core, fresh=True)
    assert (state["ranks"], state["world_size"], state["shift"]["exchangedBytes"]) == (3, 4, 4000)


def test_a_threshold_of_nothing_is_layout_sp() -> None:
    assert CoreUtilities(Compat032()).state(FakeCore().shift(0), fresh=True)["layout"] == "SP"
