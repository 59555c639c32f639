# SPDX-License-Identifier: Apache-2.0
"""Drives `EngineCore` by a clock: turns real time into model time, wakes at its events, tells waiting handlers.

Wake-ups are at least `MIN_TICK_SECONDS` apart. When the model runs faster than that (a high ``speed``), one wake-up
lets many steps happen, so the cost of an engine follows its wake-ups and not the number of its steps.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from gearshift.perf.arrangement import Arrangement
from gearshift.sim.engine.core import EngineCore
from gearshift.sim.engine.replica import Knobs
from gearshift.sim.engine.requests import Request

MIN_TICK_SECONDS: Final = 0.005


class SettleTimeoutError(TimeoutError):
    """The steps in flight did not end in time."""


class Runner:
    """The one owner of an `EngineCore`. To be used from the event loop's thread."""

    def __init__(self, core: EngineCore, speed: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.core = core
        self.speed = speed
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._last_tick = float("-inf")
        self._waiters: dict[str, asyncio.Future[None]] = {}
        self._settled: list[asyncio.Future[None]] = []

    def now(self) -> float:
        """Model time: seconds of the clock times ``speed``."""
        return self._clock() * self.speed

    def submit(self, request: Request) -> None:
        """Queue ``request`` now."""
        self._catch_up()
        self.core.submit(request, self.now())
        self._arm()

    def abort(self, request: Request) -> None:
        """Drop ``request`` unless it is done."""
        self._catch_up()
        if self.core.abort(request.id, self.now()) is not None:
            self._wake(request.id)
        self._arm()

    async def progress(self, request: Request, seen_tokens: int) -> None:
        """Return when ``request`` has more than ``seen_tokens`` tokens or is done. One caller a request."""
        if request.generated_tokens > seen_tokens or request.done:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[request.id] = waiter
        try:
            await waiter
        finally:
            self._waiters.pop(request.id, None)

    async def pause(self, timeout_seconds: float) -> None:
        """Stop scheduling and return when no step is in flight.

        Raises:
            SettleTimeoutError: a step was still in flight after ``timeout_seconds``; the engine stays paused.
        """
        self._catch_up()
        self.core.pause()
        await self._settle(timeout_seconds)

    def resume(self) -> None:
        """Schedule again."""
        self._catch_up()
        self.core.resume(self.now())
        self._arm()

    def set_knobs(self, knobs: Knobs) -> None:
        """Schedule by ``knobs`` from the next step on."""
        self._catch_up()
        self.core.set_knobs(knobs, self.now())
        self._arm()

    async def switch(self, arrangement: Arrangement) -> None:
        """Let the steps in flight end, take the modelled time of a switch, and go on with ``arrangement``."""
        was_paused = self.core.paused
        await self.pause(timeout_seconds=3600.0)
        await asyncio.sleep(self.core.profile.switch_seconds / self.speed)
        self._catch_up()
        self.core.switch(arrangement, self.now())
        if not was_paused:
            self.resume()

    def release_pin(self, request_id: str) -> bool:
        """Free KV that another engine has read."""
        self._catch_up()
        released = self.core.release_pin(request_id, self.now())
        self._arm()
        return released

    async def _settle(self, timeout_seconds: float) -> None:
        if self.core.settled:
            return
        settled = asyncio.get_running_loop().create_future()
        self._settled.append(settled)
        self._arm()
        try:
            await asyncio.wait_for(settled, timeout_seconds)
        except TimeoutError:
            raise SettleTimeoutError(f"a step was still in flight after {timeout_seconds:g} s") from None

    def _tick(self) -> None:
        self._timer = None
        self._catch_up()
        self._arm()

    def _catch_up(self) -> None:
        self._last_tick = self._clock()
        for request in self.core.advance(self.now()):
            self._wake(request.id)
        if self._settled and self.core.settled:
            waiting, self._settled = self._settled, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    def _wake(self, request_id: str) -> None:
        waiter = self._waiters.get(request_id)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _arm(self) -> None:
        """Set the timer to the core's next event, but not sooner than a tick after the last one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.core.next_event()
        if due is not None:
            at = max(due / self.speed, self._last_tick + MIN_TICK_SECONDS)
            self._timer = asyncio.get_running_loop().call_later(max(0.0, at - self._clock()), self._tick)
