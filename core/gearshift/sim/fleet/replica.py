# SPDX-License-Identifier: Apache-2.0
"""One engine replica: continuous batching with chunked prefill, whole runs of decode steps taken at once.

A step that computes prompts is an event of its own. Between two such steps the batch only loses requests at known
steps, and each step is longer than the one before by a constant, so that a run of decode steps has a closed form; a
request that arrives in its middle cuts it at the next step boundary.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, sqrt
from typing import Final

from gearshift.perf.step import StepLoad
from gearshift.sim.fleet.counters import Counters
from gearshift.sim.fleet.request import Request
from gearshift.sim.load.arrivals import PREFIX_BLOCK_TOKENS

RUN_SECONDS: Final = 0.5
"""Longest run of decode steps, so that gauges and counters are never older."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Scheduler settings, named as vLLM's, and the KV cache of the replica."""

    kv_tokens: int
    max_num_batched_tokens: int = 8192
    max_num_seqs: int = 256


@dataclass(slots=True)
class _Run:
    """Steps in flight: ``count`` decode steps, the first of ``first_seconds``, each ``growth_seconds`` longer."""

    started_at: float
    count: int
    first_seconds: float
    growth_seconds: float
    chunks: tuple[tuple[Request, int], ...] = ()  # prompt tokens computed by it; then count is 1

    def seconds(self, steps: int) -> float:
        return steps * self.first_seconds + self.growth_seconds * steps * (steps - 1) / 2

    @property
    def ends_at(self) -> float:
        return self.started_at + self.seconds(self.count)

    def cut(self, now: float) -> None:
        """End with the step that is in flight at ``now``."""
        passed = now - self.started_at
        half = self.growth_seconds / 2
        linear = self.first_seconds - half
        steps = passed / linear if half <= 0 else (sqrt(linear * linear + 4 * half * passed) - linear) / (2 * half)
        self.count = min(self.count, max(1, ceil(steps - 1e-9)))


class Replica:
    """Queue, batch and KV cache. ``prefill_only``: a request leaves with its KV once its prompt is computed."""

    __slots__ = (
        "_cache", "_fresh", "_heap", "_order", "_run", "_time", "batch", "counters", "done", "kv_used", "limits",
        "prefill_only", "prefilled", "prefilling", "step", "waiting",
    )  # fmt: skip

    def __init__(self, limits: Limits, counters: Counters, time: Callable[[StepLoad], float]) -> None:
        self.limits = limits
        self.counters = counters
        self.prefill_only = False
        self.waiting: deque[Request] = deque()
        self.prefilling: list[Request] = []  # admitted, prompt not yet computed to its end
        self.batch = 0  # requests that decode
        self.kv_used = 0
        self.step = 0
        self.done: list[Request] = []  # ended since the caller last looked
        self.prefilled: list[Request] = []  # with their KV, for another pod, since the caller last looked
        self._fresh: list[Request] = []  # in the batch, without a token of this replica or another one
        self._heap: list[tuple[int, int, Request]] = []  # decoding requests by their last step
        self._cache: dict[int, None] = {}  # ids of prompt blocks whose KV is kept, least recently used first
        self._order = 0
        self._run: _Run | None = None
        self._time = time

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return self.batch + len(self.prefilling)

    @property
    def load(self) -> int:
        """What a balancer goes by: as vLLM's, a queued request weighs four running ones."""
        return 4 * len(self.waiting) + self.running

    @property
    def idle(self) -> bool:
        """Nothing runs or waits."""
        return self._run is None and not self.waiting and not self.running

    @property
    def next_event(self) -> float | None:
        """When the steps in flight end."""
        return None if self._run is None else self._run.ends_at

    def submit(self, request: Request, now: float) -> None:
        """Queue a request; one whose KV is here already goes on with decoding."""
        if request.prompt_left + request.context_tokens + request.output_tokens > self.limits.kv_tokens:
            request.failed = "TooLong"
            self.done.append(request)
            return
        self.waiting.append(request)
        if self._run is None:
            self._start(now)
        elif self._run.count > 1:
            self._run.cut(now)

    def advance(self, now: float) -> None:
        """End the steps that end by ``now`` and start the next ones."""
        while self._run is not None and self._run.ends_at <= now + 1e-12:
            run, self._run = self._run, None
            self._end(run)
            self._start(run.ends_at)

    def drop_all(self, why: str) -> list[Request]:
        """Give up everything; returns the requests."""
        lost = [*self.waiting, *self.prefilling, *(entry[2] for entry in self._heap)]
        for request in lost:
            request.failed = why
        self.waiting.clear()
        self.prefilling.clear()
        self._heap.clear()
        self._fresh.clear()
        self.batch = self.kv_used = 0
        self._run = None
        return lost

    def _start(self, now: float) -> None:
        chunks = self._chunks()
        if not chunks and not self.batch:
            return
        if self.kv_used + self.batch > self.limits.kv_tokens:
            self._preempt()
        tokens = sum(size for _, size in chunks)
        pairs = sum(size * request.context_tokens + size * (size + 1) // 2 for request, size in chunks)
        context = self.kv_used - sum(request.context_tokens + request.prompt_left for request in self.prefilling)
        first = self._time(StepLoad(tokens, pairs, self.batch, context))
        if chunks:
            self._run = _Run(now, 1, first, 0.0, tuple(chunks))
            return
        growth = self._time(StepLoad(0, 0, self.batch, context + self.batch)) - first
        until_finish = self._heap[0][0] - self.step
        until_full = max(1, (self.limits.kv_tokens - self.kv_used) // self.batch)
        count = 1 if self._fresh else max(1, min(until_finish, until_full, int(RUN_SECONDS / first)))
        self._run = _Run(now, count, first, growth)

    def _chunks(self) -> list[tuple[Request, int]]:
        """Prompt tokens of the next step, first come, first served; admits what fits."""
        budget = self.limits.max_num_batched_tokens - self.batch
        chunks: list[tuple[Request, int]] = []
        for request in self.prefilling:
            if budget <= 0:
                return chunks
            size = min(budget, request.prompt_left)
            chunks.append((request, size))
            budget -= size
        while self.waiting and self.running < self.limits.max_num_seqs:
            request = self.waiting[0]
            self._reuse(request)
            needs = request.prompt_left + request.context_tokens
            if self.kv_used + needs + self.batch > self.limits.kv_tokens or (budget <= 0 and request.prompt_left):
                break
            self.waiting.popleft()
            self.kv_used += needs
            if not request.prompt_left:
                self._decode(request)
                continue
            size = min(budget, request.prompt_left)
            self.prefilling.append(request)
            chunks.append((request, size))
            budget -= size
        return chunks

    def _reuse(self, request: Request) -> None:
        """Take the leading blocks of the prompt that are in the prefix cache; the last token is always computed."""
        if request.context_tokens or request.started:
            return
        hits = 0
        for prefix in request.prefix_ids:
            if prefix not in self._cache:
                break
            hits += 1
        reused = min(hits * PREFIX_BLOCK_TOKENS, request.prompt_left - 1)
        request.prompt_left -= reused
        request.context_tokens += reused
        request.started = True
        self.counters.cached_tokens += reused

    def _keep(self, request: Request) -> None:
        """Have the prefix cache hold the blocks of a prompt, as far as the KV cache has room; the oldest go first."""
        for prefix in request.prefix_ids:
            self._cache.pop(prefix, None)
            self._cache[prefix] = None
        room = max(0, self.limits.kv_tokens - self.kv_used) // PREFIX_BLOCK_TOKENS
        while len(self._cache) > room:
            del self._cache[next(iter(self._cache))]

    def _decode(self, request: Request) -> None:
        """Join the batch; a request without a token yet gets its first from the next step."""
        if request.first_token_at is None:
            self._fresh.append(request)
        request.finish_step = self.step + request.output_tokens - request.generated
        self._order += 1
        heappush(self._heap, (request.finish_step, self._order, request))
        self.batch += 1

    def _end(self, run: _Run) -> None:
        at, decoding = run.ends_at, self.batch
        self.step += run.count
        if decoding:
            self.kv_used += decoding * run.count
            self.counters.tokens(decoding * run.count, run.seconds(run.count) / run.count)
        for request in self._fresh:
            self._first_token(request, at)
        self._fresh.clear()
        while self._heap and self._heap[0][0] <= self.step:
            self._finish(heappop(self._heap)[2], at)
        for request, size in run.chunks:
            request.prompt_left -= size
            request.context_tokens += size
            if not request.prompt_left:
                self.prefilling.remove(request)
                self._prompt_done(request, at)

    def _finish(self, request: Request, at: float) -> None:
        self.batch -= 1
        self.kv_used -= request.prompt_tokens + request.output_tokens - 1
        request.generated = request.output_tokens
        request.finished_at = at
        self.done.append(request)

    def _prompt_done(self, request: Request, at: float) -> None:
        self.counters.prompt_tokens += request.prompt_tokens
        self._keep(request)
        if self.prefill_only:
            self.kv_used -= request.context_tokens
            self.prefilled.append(request)
            return
        request.generated += 1
        self.counters.generation_tokens += 1
        if request.first_token_at is None:
            self._first_token(request, at)
        if request.generated >= request.output_tokens:
            self.kv_used -= request.context_tokens
            request.finished_at = at
            self.done.append(request)
        else:
            self._decode(request)

    def _first_token(self, request: Request, at: float) -> None:
        request.first_token_at = at
        self.counters.first_token(at - request.arrived_at)

    def _preempt(self) -> None:
        """Put the newest requests back into the queue until a step fits."""
        newest = sorted(self._heap, key=lambda entry: -entry[1])
        while newest and self.batch > 1 and self.kv_used + self.batch > self.limits.kv_tokens:
            entry = newest.pop(0)
            request = entry[2]
            self._heap.remove(entry)
            self.batch -= 1
            request.generated = request.output_tokens - (request.finish_step - self.step)
            self.kv_used -= request.prompt_tokens + request.generated - 1
            request.restart()
            self.waiting.appendleft(request)
            if request in self._fresh:
                self._fresh.remove(request)
            self.counters.preemptions += 1
        self._heap.sort()
