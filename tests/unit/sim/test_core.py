# SPDX-License-Identifier: Apache-2.0
"""Continuous batching of the simulated engine: order, budgets, preemption, pause, switch, kept KV."""

from dataclasses import replace

import pytest

from gearshift.api.vocabulary import Layout
from gearshift.perf.step import StepLoad, prefill_load, step_seconds
from gearshift.sim.engine.replica import Knobs
from gearshift.sim.engine.requests import RequestState
from tests.unit.sim.sim_core import SMALL, check_integrity, request, run_to_the_end, small_core


def test_one_request_takes_the_modelled_time() -> None:
    core, record = small_core()
    only = request("a", prompt=100, output=2)
    core.submit(only, 1.0)
    run_to_the_end(core, 1.0)
    prefill = step_seconds(SMALL, core.arrangement, prefill_load(100))
    decode = step_seconds(SMALL, core.arrangement, StepLoad(decode_sequences=1, kv_tokens=100))
    assert only.first_token_at == pytest.approx(1.0 + prefill)
    assert only.finished_at == pytest.approx(1.0 + prefill + decode)
    assert record.tokens == {"a": 2}


def test_a_long_prompt_is_computed_in_chunks_beside_decodes() -> None:
    core, record = small_core()
    core.submit(request("short", prompt=10, output=10), 0.0)
    core.advance(0.1)
    core.submit(request("long", prompt=1200, output=1), 0.1)
    run_to_the_end(core, 0.1)
    assert [tokens for _, tokens in record.steps if tokens > 100] == [512, 512, 1200 - 1024]


def test_a_prefill_threshold_leaves_room_for_others() -> None:
    core, record = small_core(knobs=Knobs(512, 16, long_prefill_token_threshold=100))
    core.submit(request("a", prompt=1000, output=1), 0.0)
    core.submit(request("b", prompt=50, output=1), 0.0)
    run_to_the_end(core)
    assert [each.id for each in record.finished] == ["b", "a"]


def test_no_more_sequences_run_than_allowed() -> None:
    core, record = small_core(knobs=Knobs(512, 2))
    for name in "abc":
        core.submit(request(name), 0.0)
    core.advance(0.004)
    assert (core.running, core.waiting) == (2, 1)
    run_to_the_end(core)
    assert len(record.finished) == 3


def test_decodes_without_free_blocks_preempt_the_newest_which_finishes_later() -> None:
    core, record = small_core(Layout.DP, accelerators=1)
    requests = [request(name, prompt=400, output=500) for name in "abc"]
    for each in requests:
        core.submit(each, 0.0)
    run_to_the_end(core)
    assert record.preempted > 0
    assert requests[0].preemptions == 0
    assert record.tokens == {"a": 500, "b": 500, "c": 500}


def test_replicas_share_requests_by_load() -> None:
    core, _ = small_core(Layout.DP)
    for index in range(8):
        core.submit(request(str(index)), 0.0)
    assert [len(list(replica.requests())) for replica in core.replicas] == [2, 2, 2, 2]


def test_a_paused_engine_keeps_kv_and_resumes_where_it_was() -> None:
    core, record = small_core()
    core.submit(request("a"), 0.0)
    core.advance(0.01)
    core.pause()
    core.advance(0.02)
    assert core.settled
    held = core.kv_usage
    before = record.tokens["a"]
    core.submit(request("b"), 0.03)
    core.advance(5.0)
    assert (record.tokens["a"], core.kv_usage, core.waiting) == (before, held, 1)
    core.resume(5.0)
    run_to_the_end(core, 5.0)
    assert record.tokens == {"a": 20, "b": 20}
    assert record.preempted == 0


@pytest.mark.parametrize("target", Layout)
@pytest.mark.parametrize("start", Layout)
def test_a_switch_keeps_requests_and_their_kv(start: Layout, target: Layout) -> None:
    core, record = small_core(start)
    for index in range(6):
        core.submit(request(str(index), prompt=200, output=40), 0.0)
    core.advance(0.02)
    core.pause()
    core.advance(1.0)
    computed = {each.id: each.computed_tokens for replica in core.replicas for each in replica.running}
    core.switch(replace(core.arrangement, layout=target), 1.0)
    check_integrity(core)
    assert computed == {each.id: each.computed_tokens for replica in core.replicas for each in replica.running}
    core.resume(1.0)
    run_to_the_end(core, 1.0)
    assert set(record.tokens.values()) == {40}
    assert record.preempted == 0


def test_what_a_smaller_layout_can_not_hold_recomputes() -> None:
    core, record = small_core(Layout.TP)
    for index in range(5):
        core.submit(request(str(index), prompt=1000, output=400), 0.0)
    core.advance(0.1)
    assert core.running == 5
    core.pause()
    core.advance(1.0)
    core.switch(replace(core.arrangement, layout=Layout.DP), 1.0)
    check_integrity(core)
    assert (core.running, core.waiting, record.preempted) == (4, 1, 1)
    core.resume(1.0)
    run_to_the_end(core, 1.0)
    assert set(record.tokens.values()) == {400}


def test_aborted_requests_free_their_blocks_in_any_state() -> None:
    core, record = small_core(knobs=Knobs(512, 1))
    running, waiting = request("running"), request("waiting")
    core.submit(running, 0.0)
    core.submit(waiting, 0.0)
    core.advance(0.01)
    assert core.abort("waiting", 0.01) is waiting
    assert core.abort("running", 0.01) is running
    assert core.abort("running", 0.01) is None
    run_to_the_end(core, 0.01)
    assert (core.kv_usage, core.running, core.waiting) == (0.0, 0, 0)
    assert [each.state for each in record.finished] == [RequestState.ABORTED] * 2
    assert [each.finish_reason for each in record.finished] == ["abort"] * 2


def test_kept_kv_is_held_until_it_is_read() -> None:
    core, record = small_core()
    core.submit(request("a", prompt=100, output=1, keep_kv=True), 0.0)
    core.advance(1.0)
    pin = core.find_pin("a")
    assert pin is not None
    assert (pin.tokens, len(pin.blocks)) == (100, 7)
    assert core.kv_usage > 0
    assert core.release_pin("a", 1.0)
    assert not core.release_pin("a", 1.0)
    assert (core.kv_usage, record.expired) == (0.0, 0)


def test_kept_kv_expires_with_its_lease_and_lets_waiting_requests_in() -> None:
    core, record = small_core(Layout.DP, accelerators=1)
    core.submit(request("kept", prompt=1000, output=1, keep_kv=True), 0.0)
    core.advance(1.0)
    core.submit(request("next", prompt=1000, output=1), 1.0)
    core.advance(2.0)
    assert (core.running, core.waiting) == (0, 1)
    ended = run_to_the_end(core, 2.0)
    assert record.expired == 1
    assert 30.0 < ended < 31.0
    assert record.finished[-1].id == "next"


def test_kept_kv_survives_a_switch() -> None:
    core, _ = small_core(Layout.TP)
    core.submit(request("a", output=1, keep_kv=True), 0.0)
    core.advance(1.0)
    core.switch(replace(core.arrangement, layout=Layout.DP), 1.0)
    check_integrity(core)
    assert core.find_pin("a") is not None
    assert core.release_pin("a", 1.0)


def test_kv_from_elsewhere_is_not_computed_again() -> None:
    core, record = small_core()
    fetched = request("a", prompt=1000, output=3)
    fetched.remote_tokens = 1000
    core.submit(fetched, 0.0)
    run_to_the_end(core)
    assert [tokens for _, tokens in record.steps] == [1, 1, 1]


def test_a_late_call_catches_up_all_steps_at_their_own_times() -> None:
    prompt, late = small_core(), small_core()
    ends = []
    for core, _ in (prompt, late):
        only = request("a", output=50)
        core.submit(only, 0.0)
        if core is late[0]:
            core.advance(100.0)
        else:
            run_to_the_end(core)
        ends.append(only.finished_at)
    assert ends[0] == ends[1]
