# SPDX-License-Identifier: Apache-2.0
"""The parts of a measurement, against anything that serves requests. Each returns a JSON-ready record."""

import asyncio
import itertools
import statistics
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Protocol

from bench.gpu.job import Burst, Latency, Peak
from gearshift.sim.load.arrivals import Arrival, draw_arrivals

BIN_SECONDS: Final = 0.5
MOST_ARRIVALS: Final = 100_000
SEED: Final = 7

_seeds = itertools.count(1)


class Serving(Protocol):
    """What a part asks of an engine."""

    def stream(self, prompt: list[int], output_tokens: int) -> AsyncIterator[int]:
        """Serve one request; yields how many tokens have come, as they come."""

    async def answer(self, prompt: list[int], output_tokens: int) -> None:
        """Serve one request to its end."""


def prompt(tokens: int) -> list[int]:
    """Token ids that share no prefix with an earlier prompt."""
    return Arrival(0.0, tokens, 0, next(_seeds)).prompt()


@dataclass(frozen=True)
class Timing:
    """One streamed request: seconds on the clock of `time.perf_counter`."""

    first: float
    last: float
    tokens: int

    def tpot_seconds(self) -> float:
        """Time per output token after the first."""
        return (self.last - self.first) / (self.tokens - 1)


async def timed(engine: Serving, tokens: list[int], output_tokens: int, bins: Counter[float] | None = None) -> Timing:
    """Serve one request; counts its tokens by the second at which they came, its prompt with the first.

    Raises:
        RuntimeError: it ended with another number of tokens.
    """
    first, got = 0.0, 0
    async for count in engine.stream(tokens, output_tokens):
        now = perf_counter()
        if not got:
            first = now
        if bins is not None:
            bins[now] += count if got else count + len(tokens)
        got += count
    if got != output_tokens:
        raise RuntimeError(f"a request of {output_tokens} tokens ended with {got}")
    return Timing(first, now, got)


async def latency(engine: Serving, ask: Latency) -> dict[str, Any]:
    """Median TTFT and TPOT of one request at a time, in milliseconds by input length."""
    found = {}
    for length in ask.inputs:
        await engine.answer(prompt(length), 2)
        ttft, tpot = [], []
        for _ in range(ask.repeats):
            tokens, begin = prompt(length), perf_counter()
            timing = await timed(engine, tokens, ask.output_tokens)
            ttft.append(timing.first - begin)
            tpot.append(timing.tpot_seconds())
        found[str(length)] = {
            "ttft_ms": round(1e3 * statistics.median(ttft), 2),
            "tpot_ms": round(1e3 * statistics.median(tpot), 3),
        }
    return {"times": found}


async def peak(engine: Serving, ask: Peak) -> dict[str, Any]:
    """Tokens per second, in and out, by the number of requests at once."""
    rounds: list[tuple[int, float]] = []
    requests, end = ask.first_requests, perf_counter() + ask.seconds
    while True:
        prompts = [prompt(ask.input_tokens) for _ in range(requests)]
        begin = perf_counter()
        await asyncio.gather(*(engine.answer(each, ask.output_tokens) for each in prompts))
        seconds = perf_counter() - begin
        rounds.append((requests, round(requests * (ask.input_tokens + ask.output_tokens) / seconds, 1)))
        if is_flat(rounds, ask.least_gain) or perf_counter() + 2 * seconds > end:
            return {"rounds": rounds, "flat": is_flat(rounds, ask.least_gain)}
        requests *= 2


def is_flat(rounds: Sequence[tuple[int, float]], least_gain: float) -> bool:
    """Whether the last round gained less than a share over the one before."""
    return len(rounds) > 1 and rounds[-1][1] < rounds[-2][1] * (1 + least_gain)


async def burst(engine: Serving, ask: Burst) -> dict[str, Any]:
    """Play the trace, open loop; times of each request, and tokens by time.

    Raises:
        ValueError: the trace has fewer than two requests.
    """
    arrivals = draw_arrivals(ask.phases(), SEED, MOST_ARRIVALS)
    if len(arrivals) < 2:
        raise ValueError(f"part burst: {ask.capacity_tokens_per_second} tokens/s give {len(arrivals)} request(s)")
    prompts = [each.prompt() for each in arrivals]
    bins: Counter[float] = Counter()
    begin = perf_counter()

    async def one(arrival: Arrival, tokens: list[int]) -> tuple[float, float, float]:
        due = begin + arrival.at_seconds
        await asyncio.sleep(max(0.0, due - perf_counter()))
        timing = await timed(engine, tokens, arrival.output_tokens, bins)
        waited, each = timing.first - due, timing.tpot_seconds()
        return round(arrival.at_seconds, 3), round(1e3 * waited, 2), round(1e3 * each, 3)

    requests = await asyncio.gather(*(one(*each) for each in zip(arrivals, prompts, strict=True)))
    return {"requests": requests, "bin_seconds": BIN_SECONDS, "tokens": binned(bins, begin, BIN_SECONDS)}


def binned(counts: Counter[float], begin: float, bin_seconds: float) -> list[int]:
    """Counts by bin after ``begin``."""
    found: Counter[int] = Counter()
    for at, count in counts.items():
        found[int((at - begin) / bin_seconds)] += count
    return [found[index] for index in range(max(found, default=-1) + 1)]
