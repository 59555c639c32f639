# SPDX-License-Identifier: Apache-2.0
"""The simulated engine without clock or IO: replicas of the layout in force, moved on by model time.

A switch of layout keeps requests and their KV: the shared arena of a pod belongs to all its layouts. What the new
layout has no room for recomputes, as after a preemption.
"""

from collections.abc import Iterable
from typing import Final

from gearshift.perf.arrangement import Arrangement
from gearshift.perf.capacity import kv_capacity_tokens
from gearshift.perf.profile import Profile
from gearshift.perf.step import StepLoad, step_seconds
from gearshift.sim.engine.kv import KvPool, Pin
from gearshift.sim.engine.replica import Knobs, Observer, Replica
from gearshift.sim.engine.requests import Request, RequestState

BLOCK_TOKENS: Final = 16


class EngineCore:
    """Scheduler of a whole pod. Every method takes the model time at which it happens, never an earlier one."""

    def __init__(
        self, profile: Profile, arrangement: Arrangement, knobs: Knobs, observer: Observer, lease_seconds: float = 30.0
    ) -> None:
        self.profile = profile
        self.arrangement = arrangement
        self.knobs = knobs
        self.paused = False
        self._observer = observer
        self._lease_seconds = lease_seconds
        self._live: dict[str, Request] = {}
        self.replicas = self._make_replicas(arrangement)

    @property
    def running(self) -> int:
        """Requests in the batches."""
        return sum(len(replica.running) for replica in self.replicas)

    @property
    def waiting(self) -> int:
        """Requests in the queues."""
        return sum(len(replica.waiting) for replica in self.replicas)

    @property
    def kv_usage(self) -> float:
        """Used share of all KV blocks, 0..1."""
        return sum(replica.pool.usage for replica in self.replicas) / len(self.replicas)

    @property
    def settled(self) -> bool:
        """No step is in flight."""
        return all(replica.step is None for replica in self.replicas)

    def next_event(self) -> float | None:
        """When `advance` has something to do; None: not before another call."""
        return min((due for replica in self.replicas if (due := replica.next_event()) is not None), default=None)

    def advance(self, now: float) -> list[Request]:
        """Let all that is due by ``now`` happen; returns the requests that got tokens or ended."""
        changed: list[Request] = []
        for replica in self.replicas:
            changed += replica.advance(now, self.knobs, self._lease_seconds, may_start=not self.paused)
        for request in changed:
            if request.done:
                self._live.pop(request.id, None)
        return changed

    def submit(self, request: Request, now: float) -> None:
        """Queue ``request`` at the least loaded replica."""
        self._live[request.id] = request
        replica = min(self.replicas, key=lambda each: each.load)
        request.replica = replica.index
        replica.waiting.append(request)
        self._start(now, (replica,))

    def abort(self, request_id: str, now: float) -> Request | None:
        """Drop a request that has not ended; returns it."""
        request = self._live.pop(request_id, None)
        if request is None:
            return None
        replica = self.replicas[request.replica]
        replica.remove(request)
        request.state, request.finished_at, request.finish_reason = RequestState.ABORTED, now, "abort"
        self._observer.on_finish(request)
        self._start(now, (replica,))
        return request

    def pause(self) -> None:
        """Start no step any more; those in flight end."""
        self.paused = True

    def resume(self, now: float) -> None:
        """Start steps again."""
        self.paused = False
        self._start(now, self.replicas)

    def set_knobs(self, knobs: Knobs, now: float) -> None:
        """Schedule by ``knobs`` from the next step on."""
        self.knobs = knobs
        self._start(now, self.replicas)

    def find_pin(self, request_id: str) -> Pin | None:
        """KV kept for another engine."""
        return next((pin for each in self.replicas if (pin := each.pins.find(request_id)) is not None), None)

    def release_pin(self, request_id: str, now: float) -> bool:
        """Another engine has read the KV; False when it was not kept (any more)."""
        for replica in self.replicas:
            if replica.release(request_id) is not None:
                self._start(now, (replica,))
                return True
        return False

    def switch(self, arrangement: Arrangement, now: float) -> None:
        """Serve with ``arrangement`` from now on. Only when `settled`."""
        assert self.settled, "a layout switch waits for the steps in flight"
        old, self.arrangement = self.replicas, arrangement
        if arrangement.replicas != len(old) or self._pool_blocks(arrangement) != old[0].pool.capacity_blocks:
            self.replicas = self._make_replicas(arrangement)
            for pin in sorted((pin for replica in old for pin in replica.pins), key=lambda pin: pin.expires_at):
                self._move_pin(pin)
            self._move_requests([request for replica in old for request in replica.requests()])
        if not self.paused:
            self._start(now, self.replicas)

    def _move_pin(self, pin: Pin) -> None:
        target = max(self.replicas, key=lambda replica: replica.pool.free_blocks)
        blocks = target.pool.take(target.pool.blocks_for(pin.tokens))
        if blocks is None:
            self._observer.on_expire(target.index)
            return
        pin.blocks = blocks
        target.pins.add(pin)

    def _move_requests(self, requests: list[Request]) -> None:
        requests.sort(key=lambda request: request.arrived_at)
        running = [request for request in requests if request.state is RequestState.RUNNING]
        waiting = [request for request in requests if request.state is RequestState.WAITING]
        preempted = [request for request in running if not self._move_running(request)]
        for request in preempted + waiting:
            target = min(self.replicas, key=lambda replica: replica.load)
            request.replica = target.index
            target.waiting.append(request)

    def _move_running(self, request: Request) -> bool:
        for target in sorted(self.replicas, key=lambda replica: len(replica.running)):
            blocks = target.pool.take(target.pool.blocks_for(max(request.computed_tokens, request.sequence_tokens)))
            if blocks is not None:
                request.blocks, request.replica = blocks, target.index
                target.running.append(request)
                return True
        request.preempt()
        self._observer.on_preempt(request)
        return False

    def _start(self, now: float, replicas: Iterable[Replica]) -> None:
        if not self.paused:
            for replica in replicas:
                replica.start_step(now, self.knobs)

    def _make_replicas(self, arrangement: Arrangement) -> list[Replica]:
        blocks = self._pool_blocks(arrangement)
        return [
            Replica(index, KvPool(blocks, BLOCK_TOKENS), self._observer, self._time_step)
            for index in range(arrangement.replicas)
        ]

    def _pool_blocks(self, arrangement: Arrangement) -> int:
        return kv_capacity_tokens(self.profile, arrangement) // BLOCK_TOKENS

    def _time_step(self, load: StepLoad) -> float:
        return step_seconds(self.profile, self.arrangement, load)
