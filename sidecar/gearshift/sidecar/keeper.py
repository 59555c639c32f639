# SPDX-License-Identifier: Apache-2.0
"""Keeps one engine process running: adopts or starts it, follows its state, restarts it when it exits or hangs.

A keeper knows nothing of transitions. It tells the agent when its engine came up, what the engine says of itself, and
when it was lost and why.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any, Final, Protocol

from gearshift.api.engine import EngineState
from gearshift.api.host import ProcessStatus, SignalRequest
from gearshift.api.vocabulary import Layout
from gearshift.sidecar.backoff import Backoff
from gearshift.sidecar.engine_client import EngineCallError, EngineClient
from gearshift.sidecar.engines import EnginePlan
from gearshift.sidecar.host_client import HostCallError, HostClient
from gearshift.sidecar.host_watch import HostWatch
from gearshift.sidecar.settings import Timings

log = logging.getLogger(__name__)
_TAIL_LINES: Final = 12
_TAIL_CHARACTERS: Final = 2000


class Listener(Protocol):
    """What a keeper needs of the agent."""

    def is_active(self, plan: EnginePlan) -> bool:
        """True for the engine that serves the pod's present layout."""

    async def prepare(self, plan: EnginePlan) -> None:
        """Called when an engine answers after its start, before it counts as up."""

    def observed(self, plan: EnginePlan, state: EngineState) -> None:
        """Called with each state that the engine gives."""

    def lost(self, plan: EnginePlan, why: str) -> None:
        """Called when the process is no longer there."""

    def restarted(self, plan: EnginePlan) -> None:
        """Called at each start but the first."""


class Keeper:
    """One resident engine."""

    def __init__(
        self,
        plan: EnginePlan,
        client: EngineClient,
        host: HostClient,
        watch: HostWatch,
        timings: Timings,
        gate: asyncio.Lock,
    ) -> None:
        self.plan = plan
        self.client = client
        self.up = asyncio.Event()
        self.served: frozenset[Layout] = frozenset(plan.layouts)  # those of the plan that the engine says it can serve
        self.shift_floor_tokens = 0  # least threshold of layout Shift that the engine says it can take
        self._host = host
        self._watch = watch
        self._timings = timings
        self._gate = gate  # engines of a pod start one after the other: each measures the memory that is left
        self._backoff = Backoff(timings.backoff_first, timings.backoff_most, timings.backoff_reset)
        self._started = False
        self._condemned = asyncio.Event()
        self._sentence = ""

    async def run(self, listener: Listener) -> None:
        """Keep the engine until the pod terminates."""
        while not self._watch.terminating:
            began = time.monotonic()
            why = await self._live(listener)
            self.up.clear()
            log.error("engine %s lost: %s", self.plan.name, why)
            listener.lost(self.plan, why)
            await asyncio.sleep(self._backoff.after(time.monotonic() - began))

    def restart(self, why: str) -> None:
        """Have the process killed and started again."""
        self._sentence = why
        self._condemned.set()

    async def _live(self, listener: Listener) -> str:
        """One life of the process; why it ended."""
        self._condemned.clear()
        async with self._gate:
            status = await self._obtain(listener)
            why = await self._during(status, self._warm_up(listener))
        if why is None:
            self.up.set()
            why = await self._during(status, self._follow(listener))
        return str(why)

    async def _obtain(self, listener: Listener) -> ProcessStatus:
        """The running process: the one found, or a new one."""
        said = ""
        while True:
            await self._watch.connected.wait()
            found = self._watch.processes.get(self.plan.name)
            if found is not None and found.state == "Running":
                self._adopt(found)
                return found
            try:
                return await self._start(listener)
            except HostCallError as error:
                if str(error) != said:
                    log.warning("engine %s was not started: %s", self.plan.name, error)
                    said = str(error)
            await asyncio.sleep(self._timings.backoff_first)

    def _adopt(self, found: ProcessStatus) -> None:
        self._started = True
        differs = "" if found.spec == self.plan.spec else ", started with another command line"
        log.info("engine %s runs already: pid %d%s", self.plan.name, found.pid, differs)

    async def _start(self, listener: Listener) -> ProcessStatus:
        if self.plan.spec is None:
            raise ValueError(f"engine {self.plan.name} has no command line")
        status = await self._host.start(self.plan.name, self.plan.spec)
        self._watch.note(status)
        log.info("engine %s started: pid %d", self.plan.name, status.pid)
        if self._started:
            listener.restarted(self.plan)
        self._started = True
        return status

    async def _during(self, status: ProcessStatus, work: Coroutine[Any, Any, str | None]) -> str | None:
        """Do ``work`` while the process runs: None when it was done, else why the process is no longer there."""
        doing = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._watch.wait_exit(self.plan.name, status.pid))
        sentence = asyncio.ensure_future(self._condemned.wait())
        tasks: list[asyncio.Future[Any]] = [doing, gone, sentence]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return _obituary(gone.result())
            why = self._sentence if sentence.done() else doing.result()
            return None if why is None else f"{why}; {await self._kill(status, why)}"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _warm_up(self, listener: Listener) -> str | None:
        """Wait for the first answer; the process is watched meanwhile."""
        began = time.monotonic()
        while True:
            try:
                state = await self.client.state()
                break
            except EngineCallError as error:
                log.debug("%s", error)
                if time.monotonic() - began >= self._timings.start:
                    return f"gave no answer within {self._timings.start:g} s of its start: {error}"
            await asyncio.sleep(self._timings.start_poll)
        self._note_layouts(state)
        self.shift_floor_tokens = state.shift_floor_tokens or 0
        try:
            await listener.prepare(self.plan)
        except EngineCallError as error:
            return f"could not be made ready: {error}"
        return None

    def _note_layouts(self, state: EngineState) -> None:
        self.served = frozenset(self.plan.layouts).intersection(state.layouts)
        unserved = [layout.value for layout in self.plan.layouts if layout not in self.served]
        if unserved:
            log.warning("engine %s cannot serve %s", self.plan.name, ", ".join(unserved))

    async def _follow(self, listener: Listener) -> str:
        """Report the engine's state until it hangs; a state without all ranks is no answer."""
        answered = time.monotonic()
        problem = ""
        while time.monotonic() - answered < self._timings.hang:
            try:
                state = await self.client.state()
            except EngineCallError as error:
                problem = str(error)
            else:
                listener.observed(self.plan, state)
                problem = "" if state.ranks == state.world_size else f"{state.ranks} of {state.world_size} ranks answer"
            if not problem:
                answered = time.monotonic()
            active = listener.is_active(self.plan)
            await asyncio.sleep(self._timings.engine_poll if active else self._timings.idle_poll)
        return f"hangs for {self._timings.hang:g} s: {problem}"

    async def _kill(self, status: ProcessStatus, why: str) -> str:
        """Signal until the process is gone, be it with its container, whose next host knows nothing of it; how it
        ended.
        """
        log.error("engine %s (pid %d) is killed: %s", self.plan.name, status.pid, why)
        gone = asyncio.ensure_future(self._watch.wait_exit(self.plan.name, status.pid))
        try:
            while not gone.done():
                try:
                    await self._host.signal(self.plan.name, SignalRequest(signal="SIGKILL"))
                except HostCallError as error:
                    log.warning("engine %s was not killed: %s", self.plan.name, error)
                await asyncio.wait([gone], timeout=self._timings.kill_again)
            return _obituary(gone.result())
        finally:
            gone.cancel()


def _obituary(status: ProcessStatus | None) -> str:
    if status is None:
        return "the engine container has restarted"
    tail = "\n".join(status.log_tail[-_TAIL_LINES:])[-_TAIL_CHARACTERS:]
    return f"exited with {status.exit_code}; last lines:\n{tail}" if tail else f"exited with {status.exit_code}"
