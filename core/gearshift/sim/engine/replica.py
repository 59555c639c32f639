# SPDX-License-Identifier: Apache-2.0
"""One simulated engine replica: continuous batching with chunked prefill over a fixed number of KV blocks.

The rules are those of vLLM's scheduler: running requests first, in order of admission; a decode that finds no free
block preempts the newest request, which recomputes later; waiting requests follow first come, first served, into what
is left of the step's token budget.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from gearshift.perf.step import StepLoad
from gearshift.sim.engine.kv import KvPool, Pin, Pins
from gearshift.sim.engine.requests import Request, RequestState


@dataclass(frozen=True, slots=True)
class Knobs:
    """Scheduler settings, named as vLLM's."""

    max_num_batched_tokens: int
    max_num_seqs: int
    long_prefill_token_threshold: int = 0  # most prompt tokens of one request in a step; 0: no limit


@dataclass(slots=True)
class Step:
    """A step in flight."""

    started_at: float
    ends_at: float
    scheduled: list[tuple[Request, int]]  # request and number of its tokens
    tokens: int


class Observer(Protocol):
    """Hears what happens in a replica, at model time. ``replica`` is its index."""

    def on_step(self, replica: int, tokens: int) -> None:
        """A step of ``tokens`` scheduled tokens has ended."""

    def on_token(self, request: Request, now: float) -> None:
        """``request`` has generated a token; its times are those before it."""

    def on_finish(self, request: Request) -> None:
        """``request`` is done, by itself or aborted."""

    def on_preempt(self, request: Request) -> None:
        """``request`` has lost its KV."""

    def on_expire(self, replica: int) -> None:
        """KV that was kept for another engine has been freed unread."""


class Replica:
    """Queue, batch and KV cache of one replica, moved on by `advance`."""

    def __init__(self, index: int, pool: KvPool, observer: Observer, time_step: Callable[[StepLoad], float]) -> None:
        self.index = index
        self.pool = pool
        self.pins = Pins()
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.step: Step | None = None
        self._observer = observer
        self._time_step = time_step

    @property
    def load(self) -> int:
        """What a balancer goes by: as vLLM's, a queued request weighs four running ones."""
        return 4 * len(self.waiting) + len(self.running)

    def next_event(self) -> float | None:
        """When something will happen by itself."""
        expiry = self.pins.next_expiry()
        if self.step is None:
            return expiry
        return self.step.ends_at if expiry is None else min(self.step.ends_at, expiry)

    def advance(self, now: float, knobs: Knobs, lease_seconds: float, *, may_start: bool) -> list[Request]:
        """Let all that is due by ``now`` happen. Returns the requests that got tokens or ended, perhaps repeatedly."""
        changed: list[Request] = []
        while (due := self.next_event()) is not None and due <= now:
            if self.step is not None and self.step.ends_at <= due:
                changed += self._end_step(self.step, lease_seconds)
            self._expire_pins(due)
            if may_start:
                self.start_step(due, knobs)
        return changed

    def start_step(self, now: float, knobs: Knobs) -> None:
        """Start a step at ``now`` unless one is in flight or nothing can be scheduled."""
        if self.step is not None:
            return
        batch = len(self.running)
        scheduled = self._schedule_running(knobs)
        if len(scheduled) == batch:  # nothing was preempted and there is budget left
            scheduled += self._admit(knobs, knobs.max_num_batched_tokens - sum(tokens for _, tokens in scheduled))
        if not scheduled:
            return
        load = _step_load(scheduled)
        for request, _ in scheduled:
            if request.scheduled_at is None:
                request.scheduled_at = now
        self.step = Step(now, now + self._time_step(load), scheduled, load.tokens)

    def remove(self, request: Request) -> None:
        """Take ``request`` out, in whatever state, and free its blocks."""
        if request.state is RequestState.RUNNING:
            self.running.remove(request)
        elif request.state is RequestState.WAITING:
            self.waiting.remove(request)
        self.pool.give_back(request.blocks)
        request.blocks = []

    def release(self, request_id: str) -> Pin | None:
        """Free the blocks kept for another engine."""
        pin = self.pins.remove(request_id)
        if pin is not None:
            self.pool.give_back(pin.blocks)
        return pin

    def requests(self) -> Iterator[Request]:
        """Running requests, then waiting ones, each in order."""
        yield from self.running
        yield from self.waiting

    def _schedule_running(self, knobs: Knobs) -> list[tuple[Request, int]]:
        budget = knobs.max_num_batched_tokens
        scheduled: list[tuple[Request, int]] = []
        position = 0
        while position < len(self.running) and budget > 0:
            request = self.running[position]
            tokens = _chunk(request, budget, knobs)
            if not self._grow(request, request.computed_tokens + tokens):
                break
            scheduled.append((request, tokens))
            budget -= tokens
            position += 1
        return scheduled

    def _grow(self, request: Request, tokens: int) -> bool:
        """Give ``request`` blocks for ``tokens`` tokens, if need be of newer requests; False: it was preempted."""
        missing = self.pool.blocks_for(tokens) - len(request.blocks)
        if missing <= 0:
            return True
        while (blocks := self.pool.take(missing)) is None:
            newest = self.running.pop()
            self.pool.give_back(newest.preempt())
            self.waiting.appendleft(newest)
            self._observer.on_preempt(newest)
            if newest is request:
                return False
        request.blocks += blocks
        return True

    def _admit(self, knobs: Knobs, budget: int) -> list[tuple[Request, int]]:
        scheduled: list[tuple[Request, int]] = []
        while self.waiting and budget > 0 and len(self.running) < knobs.max_num_seqs:
            request = self.waiting[0]
            blocks = self._blocks_to_admit(request)
            if blocks is None:
                break
            self.waiting.popleft()
            self._seat(request, blocks)
            tokens = _chunk(request, budget, knobs)
            scheduled.append((request, tokens))
            budget -= tokens
        return scheduled

    def _blocks_to_admit(self, request: Request) -> list[int] | None:
        """Blocks for the whole sequence so far, if 1 % stays free for the running ones to grow."""
        needed = self.pool.blocks_for(request.sequence_tokens)
        reserve = self.pool.capacity_blocks // 100 if self.running else 0
        return self.pool.take(needed) if needed + reserve <= self.pool.free_blocks else None

    def _seat(self, request: Request, blocks: list[int]) -> None:
        request.blocks = blocks
        request.state = RequestState.RUNNING
        request.replica = self.index
        request.computed_tokens = min(request.remote_tokens, request.sequence_tokens - 1)
        self.running.append(request)

    def _end_step(self, step: Step, lease_seconds: float) -> list[Request]:
        self.step = None
        self._observer.on_step(self.index, step.tokens)
        changed: list[Request] = []
        finished = False
        for request, tokens in step.scheduled:
            if request.state is not RequestState.RUNNING:
                continue
            request.computed_tokens += tokens
            if request.uncomputed_tokens == 0:
                self._generate(request, step.ends_at)
                changed.append(request)
                finished = finished or request.done
        if finished:
            self._retire(step.ends_at + lease_seconds)
        return changed

    def _generate(self, request: Request, now: float) -> None:
        self._observer.on_token(request, now)
        request.generated_tokens += 1
        if request.first_token_at is None:
            request.first_token_at = now
        request.last_token_at = now
        if request.generated_tokens >= request.output_tokens:
            request.finished_at = now
            request.state = RequestState.FINISHED

    def _retire(self, lease_ends_at: float) -> None:
        ended = [request for request in self.running if request.done]
        self.running = [request for request in self.running if not request.done]
        for request in ended:
            blocks, request.blocks = request.blocks, []
            if request.keep_kv and request.finish_reason == "length":
                self.pins.add(Pin(request.id, request.digest, request.computed_tokens, blocks, lease_ends_at))
            else:
                self.pool.give_back(blocks)
            self._observer.on_finish(request)

    def _expire_pins(self, now: float) -> None:
        while (expiry := self.pins.next_expiry()) is not None and expiry <= now:
            self.release(next(iter(self.pins)).request_id)
            self._observer.on_expire(self.index)


def _chunk(request: Request, budget: int, knobs: Knobs) -> int:
    tokens = min(request.uncomputed_tokens, budget)
    limit = knobs.long_prefill_token_threshold
    return min(tokens, limit) if limit else tokens


def _step_load(scheduled: list[tuple[Request, int]]) -> StepLoad:
    prefill = pairs = decodes = kv_tokens = 0
    for request, tokens in scheduled:
        if tokens == 1 and request.computed_tokens >= request.prompt_tokens:
            decodes += 1
            kv_tokens += request.computed_tokens
        else:
            prefill += tokens
            pairs += tokens * request.computed_tokens + tokens * (tokens + 1) // 2
    return StepLoad(prefill, pairs, decodes, kv_tokens)
