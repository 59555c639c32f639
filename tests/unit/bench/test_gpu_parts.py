# SPDX-License-Identifier: Apache-2.0
"""What the parts measure, on an engine whose clock the test holds."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from bench.gpu import parts
from bench.gpu.job import BURSTS, Burst, Latency, Peak


class Clock:
    """`perf_counter` of the parts."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


class Engine:
    """A stream's first token takes a millisecond per token of the prompt, each other 0.25 s.

    Whole answers that are asked for at once take the next of `rounds` seconds together.
    """

    def __init__(self, clock: Clock, *rounds: float) -> None:
        self.clock, self.rounds = clock, iter(rounds)
        self.prompts: list[list[int]] = []
        self.together = 0
        self.short = 0

    async def stream(self, prompt: list[int], output_tokens: int) -> AsyncIterator[int]:
        self.prompts.append(prompt)
        for index in range(output_tokens - self.short):
            self.clock.now += 0.25 if index else len(prompt) / 1000
            yield 1

    async def answer(self, prompt: list[int], _output_tokens: int) -> None:
        self.prompts.append(prompt)
        self.together += 1
        await asyncio.sleep(0)
        if self.together:  # all have been asked for, and this one is the first to be resumed
            self.together, self.clock.now = 0, self.clock.now + next(self.rounds, 1.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(parts, "perf_counter", made.perf_counter)
    return made


async def test_latency_is_the_first_token_and_the_mean_gap_of_the_others(clock: Clock) -> None:
    engine = Engine(clock)
    found = await parts.latency(engine, Latency(inputs=(2000, 4000), output_tokens=5, repeats=3))
    assert found["times"] == {
        "2000": {"ttft_ms": 2000.0, "tpot_ms": 250.0},
        "4000": {"ttft_ms": 4000.0, "tpot_ms": 250.0},
    }
    assert len({tuple(prompt[:64]) for prompt in engine.prompts}) == len(engine.prompts), "no prefix is shared"


async def test_a_short_answer_is_an_error(clock: Clock) -> None:
    engine = Engine(clock)
    engine.short = 1
    with pytest.raises(RuntimeError, match="a request of 5 tokens ended with 4"):
        await parts.latency(engine, Latency(inputs=(100,), output_tokens=5))


async def test_peak_doubles_until_a_round_gains_little(clock: Clock) -> None:
    engine = Engine(clock, 1.0, 1.0, 1.98)
    found = await parts.peak(engine, Peak(input_tokens=90, output_tokens=10, first_requests=2, seconds=1000.0))
    assert found == {"rounds": [(2, 200.0), (4, 400.0), (8, 404.0)], "flat": True}


async def test_peak_begins_no_round_that_would_end_too_late(clock: Clock) -> None:
    engine = Engine(clock, 10.0, 10.0)
    found = await parts.peak(engine, Peak(input_tokens=90, output_tokens=10, first_requests=2, seconds=35.0))
    assert [requests for requests, _ in found["rounds"]] == [2, 4]
    assert not found["flat"]


async def test_tokens_are_counted_when_they_come_and_the_prompt_with_the_first(clock: Clock) -> None:
    bins: Counter[float] = Counter()
    timing = await parts.timed(Engine(clock), [5] * 1000, 3, bins)
    assert dict(bins) == {101.0: 1001, 101.25: 1, 101.5: 1}
    assert timing.tpot_seconds() == 0.25
    assert parts.binned(bins, 100.0, 0.5) == [0, 0, 1002, 1]


def test_the_trace_is_calm_with_four_bursts_in_proportion_to_the_capacity() -> None:
    ask = Burst(input_tokens=900, output_tokens=100).resolved(20_003.0)
    assert ask.capacity_tokens_per_second == 20_000.0
    rates = [phase.requests_per_second for phase in ask.phases()]
    assert rates == [4.0, 25.0] * BURSTS + [4.0]
    assert {(phase.prompt_tokens, phase.output_tokens) for phase in ask.phases()} == {(900, 100)}


async def test_a_trace_without_requests_is_refused(clock: Clock) -> None:
    with pytest.raises(ValueError, match=r"10.0 tokens/s give 0 request\(s\)"):
        await parts.burst(Engine(clock), Burst(capacity_tokens_per_second=10.0))


async def test_the_trace_is_played_and_every_request_timed(clock: Clock) -> None:
    ask = Burst(
        input_tokens=10, output_tokens=2, capacity_tokens_per_second=1000.0, calm_seconds=0.1, burst_seconds=0.1
    )
    found = await parts.burst(Engine(clock), ask)
    assert len(found["requests"]) > 10
    assert sum(found["tokens"]) == 12 * len(found["requests"])
    assert {tpot for _, _, tpot in found["requests"]} == {250.0}


def test_a_trace_without_a_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match="--burst-capacity"):
        Burst().resolved(None)
