# SPDX-License-Identifier: Apache-2.0
"""The replica of the fleet simulator: times in closed form, KV to the token, agreement with the step-by-step engine."""

from itertools import count

import pytest

from gearshift.api.vocabulary import Layout
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.capacity import kv_capacity_tokens
from gearshift.perf.profiles import LLAMA_3_70B_FP8_H200 as PROFILE
from gearshift.perf.step import StepLoad, step_seconds
from gearshift.sim.engine.core import EngineCore
from gearshift.sim.engine.replica import Knobs
from gearshift.sim.engine.requests import Request as EngineRequest
from gearshift.sim.fleet.counters import Counters
from gearshift.sim.fleet.replica import Limits, Replica
from gearshift.sim.fleet.request import Request
from gearshift.sim.load.arrivals import Arrival


def replica(kv_tokens: int = 100_000, step: float = 0.01, each: float = 0.0) -> Replica:
    """Steps of ``step`` seconds, and ``each`` for every token in the KV cache of the batch."""
    return Replica(Limits(kv_tokens, 1000, 64), Counters(), lambda load: step + each * load.kv_tokens)


def request(at: float = 0.0, prompt: int = 100, output: int = 11, prefixes: tuple[int, ...] = ()) -> Request:
    return Request(Arrival(at, prompt, output, 0, prefixes))


def drain(engine: Replica) -> float:
    """Play until nothing is left; the time of the last event."""
    now = 0.0
    for turns in count():
        due = engine.next_event
        if due is None:
            return now
        assert turns < 10_000
        now = due
        engine.advance(now)
    raise AssertionError


def test_one_request_takes_one_step_a_token() -> None:
    engine, lone = replica(), request()
    engine.submit(lone, 0.0)
    assert drain(engine) == pytest.approx(0.11)
    assert lone.ttft_seconds == pytest.approx(0.01)
    assert lone.itl_seconds == pytest.approx(0.01)
    assert engine.idle
    assert engine.kv_used == 0
    assert (engine.counters.prompt_tokens, engine.counters.generation_tokens) == (100, 11)


def test_steps_that_grow_are_summed_exactly() -> None:
    engine, lone = replica(each=1e-5), request(output=101)
    engine.submit(lone, 0.0)
    decoding = sum(0.01 + 1e-5 * (100 + done) for done in range(100))
    assert drain(engine) == pytest.approx(0.01 + decoding)


def test_an_arrival_cuts_a_run_at_the_next_step() -> None:
    engine, first, second = replica(), request(output=100), request(at=0.2051, output=2)
    engine.submit(first, 0.0)
    while engine.next_event is not None and engine.next_event < 0.2051:
        engine.advance(engine.next_event)
    engine.submit(second, 0.2051)
    drain(engine)
    assert second.first_token_at == pytest.approx(0.22)
    assert first.finished_at == pytest.approx(1.0)


def test_long_prompts_are_computed_in_chunks() -> None:
    engine, long = replica(), request(prompt=2500, output=1)
    engine.submit(long, 0.0)
    drain(engine)
    assert long.ttft_seconds == pytest.approx(0.03)


def test_a_request_that_can_never_fit_fails_at_once() -> None:
    engine, huge = replica(kv_tokens=100), request(prompt=90, output=20)
    engine.submit(huge, 0.0)
    assert (huge.failed, engine.done, engine.idle) == ("TooLong", [huge], True)


def test_requests_wait_for_kv_and_are_preempted_when_it_runs_out() -> None:
    engine = replica(kv_tokens=300)
    requests = [request(prompt=100, output=90) for _ in range(3)]
    for each in requests:
        engine.submit(each, 0.0)
    drain(engine)
    assert all(each.finished_at is not None for each in requests)
    assert engine.counters.preemptions > 0
    assert engine.kv_used == 0


def test_shared_prefixes_are_computed_once() -> None:
    engine = replica()
    first, second = (request(prompt=2000, output=1, prefixes=(1, 2, 3)) for _ in range(2))
    engine.submit(first, 0.0)
    drain(engine)
    second.arrived_at = 1.0
    engine.submit(second, 1.0)
    drain(engine)
    assert first.ttft_seconds == pytest.approx(0.02)
    assert second.ttft_seconds == pytest.approx(0.01)


def test_a_prefill_pod_hands_requests_over_and_a_decode_pod_goes_on() -> None:
    prefill, decode, split = replica(), replica(), request()
    prefill.prefill_only = True
    prefill.submit(split, 0.0)
    drain(prefill)
    assert prefill.prefilled == [split]
    assert (prefill.kv_used, split.first_token_at) == (0, None)
    split.context_tokens = split.prompt_tokens - 1
    decode.submit(split, 0.5)
    drain(decode)
    assert split.first_token_at == pytest.approx(0.51)
    assert split.finished_at == pytest.approx(0.5 + 11 * 0.01)
    assert decode.kv_used == 0


class _Silent:
    def on_step(self, replica: int, tokens: int) -> None: ...
    def on_token(self, request: EngineRequest, now: float) -> None: ...
    def on_finish(self, request: EngineRequest) -> None: ...
    def on_preempt(self, request: EngineRequest) -> None: ...
    def on_expire(self, replica: int) -> None: ...


def test_it_agrees_with_the_engine_that_takes_every_step() -> None:
    arrangement = Arrangement(Layout.TP, 8, 8)
    arrivals = [Arrival(0.05 * n, 500 + 700 * (n % 5), 20 + 13 * (n % 7), n) for n in range(60)]
    engine = EngineCore(PROFILE, arrangement, Knobs(8192, 256), _Silent())
    exact: list[EngineRequest] = []

    def time(load: StepLoad) -> float:
        return step_seconds(PROFILE, arrangement, load)

    fast = Replica(Limits(kv_capacity_tokens(PROFILE, arrangement)), Counters(), time)
    quick = [Request(each) for each in arrivals]
    for arrival, each in zip(arrivals, quick, strict=True):
        for core in (engine, fast):
            core.advance(arrival.at_seconds)
        made = EngineRequest(
            id=str(arrival.prompt_seed),
            digest=b"",
            prompt_tokens=arrival.prompt_tokens,
            output_tokens=arrival.output_tokens,
            finish_reason="length",
            arrived_at=arrival.at_seconds,
        )
        exact.append(made)
        engine.submit(made, arrival.at_seconds)
        fast.submit(each, arrival.at_seconds)
    engine.advance(1e6)
    fast.advance(1e6)
    for made, each in zip(exact, quick, strict=True):
        assert each.finished_at == pytest.approx(made.finished_at, rel=0.02)
