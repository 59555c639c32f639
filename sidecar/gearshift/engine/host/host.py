# SPDX-License-Identifier: Apache-2.0
"""The host itself: ties the process table to real processes and to the events about them."""

import asyncio
import logging
import os
import signal
import time
from typing import Final, Literal

from gearshift.api.host import HostEvent, ProcessSpec
from gearshift.engine.host import children, procfs
from gearshift.engine.host.hub import Hub
from gearshift.engine.host.leftovers import remove_leftovers
from gearshift.engine.host.logs import relay
from gearshift.engine.host.table import Entry, Table
from gearshift.engine.host.termination import Termination, View

log = logging.getLogger("gearshift.engine.host")

DEPARTURE_SECONDS: Final = 2.0
"""What the rest of a session gets to end by itself after its leader: Python's resource tracker then frees memory."""
SETTLE_SECONDS: Final = 5.0
"""How long an exit may wait for the rest of its session to be gone."""
LAST_LINES_SECONDS: Final = 1.0
"""How long it may then wait for the end of its output, which a process outside the session can hold open."""
POLL_SECONDS: Final = 0.02
FALLBACK_STOP_SECONDS: Final = 5.0
"""From SIGTERM to SIGKILL when no sidecar says how long."""


class Host:
    """Engine processes of one container. All methods run in the event loop's thread."""

    def __init__(self, grace_seconds: float) -> None:
        self.table = Table()
        self.hub = Hub()
        self.grace_seconds = grace_seconds
        self.termination: Termination | None = None
        self._order: float | None = None  # grace of a received shutdown order
        self._logs: dict[int, asyncio.Event] = {}
        self._settling: set[asyncio.Task[None]] = set()

    def put(self, name: str, spec: ProcessSpec) -> Entry:
        """Have ``spec`` run as ``name``.

        Raises:
            RefusedError: it contradicts what runs.
            BadSpecError: it can't be started.
        """
        present = self.table.admit(name, spec)
        if present is not None:
            return present
        pid, output = children.spawn(spec, dict(os.environ))
        entry = self.table.started(name, spec, pid, time.time())
        read = self._logs[pid] = asyncio.Event()
        loop = asyncio.get_running_loop()
        relay(name, output, entry.log_tail, lambda: _set_from_thread(loop, read))
        log.info("started %s, pid %d: %s", name, pid, " ".join(spec.argv))
        self.hub.publish(HostEvent(kind="Started", process=entry.status()))
        return entry

    def signal(self, name: str, number: signal.Signals) -> Entry:
        """Signal the process group of ``name``; nothing happens when it has ended.

        Raises:
            KeyError: no such process.
        """
        entry = self.table.get(name)
        if entry.running:
            log.info("%s to %s (group %d)", number.name, name, entry.pid)
            children.signal_group(entry.pid, number)
        return entry

    def reap(self) -> None:
        """Collect the children that ended: engines are reported, orphans just leave the process table."""
        for pid, code in children.reap():
            if pid in self._logs:
                task = asyncio.create_task(self._settle(pid, code))
                self._settling.add(task)
                task.add_done_callback(self._settling.discard)

    async def _settle(self, pid: int, code: int) -> None:
        """Report an exit once nothing of that engine is left that could hold memory or ports."""
        began = time.monotonic()
        while (rest := procfs.of_session(pid, procfs.processes())) and time.monotonic() < began + SETTLE_SECONDS:
            if time.monotonic() > began + DEPARTURE_SECONDS:
                children.kill(rest)
            await asyncio.sleep(POLL_SECONDS)
        read = self._logs.pop(pid)
        try:
            await asyncio.wait_for(read.wait(), LAST_LINES_SECONDS)
        except TimeoutError:
            log.warning("output of pid %d is held open by a process outside its session", pid)
        entry = self.table.exited(pid, code)
        assert entry is not None
        removed = remove_leftovers(entry.started_at)
        log.info("%s (pid %d) exited with %d; removed shared memory: %s", entry.name, pid, code, removed or "none")
        self.hub.publish(HostEvent(kind="Exited", process=entry.status()))

    def terminate(self) -> None:
        """SIGTERM was received: tell the sidecar how long it has to drain."""
        if self.termination is not None:
            return
        self.table.terminating = True
        self.termination = Termination(time.monotonic(), self.grace_seconds)
        log.info("terminating; %d sidecar(s) connected, %.0f s to drain", len(self.hub), self.grace_seconds)
        self.hub.publish(self.terminating_event())

    def terminating_event(self) -> HostEvent:
        """The event with the time left; only while terminating."""
        assert self.termination is not None
        return HostEvent(kind="Terminating", grace_seconds=self.termination.left(time.monotonic()))

    def order_shutdown(self, grace_seconds: float) -> None:
        """The sidecar has nothing left to drain: stop the engines, then exit."""
        if self._order is None:
            self._order = grace_seconds
            self.table.terminating = True
            self.hub.changed.set()

    async def run(self) -> None:
        """Return when the container may end: every process has been stopped and reaped."""
        reason = await self._wait_for_the_end()
        grace = FALLBACK_STOP_SECONDS if self._order is None else self._order
        log.info("stopping engines (%s), %.1f s between SIGTERM and SIGKILL", reason, grace)
        for entry in self.table.running():
            self.signal(entry.name, signal.SIGTERM)
        await self._until_stopped(grace)
        await self._kill_all()
        self.hub.close()

    async def _wait_for_the_end(self) -> Literal["SidecarDone", "NothingRuns", "GracePassed", "NoSidecar"]:
        while True:
            self.hub.changed.clear()
            wait = None
            if self._order is not None:
                return "SidecarDone"
            if self.termination is not None:
                view = self._view()
                reason = self.termination.stop_because(view)
                if reason is not None:
                    return reason
                wait = self.termination.next_look(view)
            try:
                await asyncio.wait_for(self.hub.changed.wait(), wait)
            except TimeoutError:
                continue

    def _view(self) -> View:
        return View(
            now=time.monotonic(),
            sidecars=len(self.hub),
            absent_since=self.hub.absent_since,
            running=len(self.table.running()),
            ordered=self._order is not None,
        )

    async def _until_stopped(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.table.running():
            self.hub.changed.clear()
            left = deadline - time.monotonic()
            if left <= 0:
                return
            try:
                await asyncio.wait_for(self.hub.changed.wait(), left)
            except TimeoutError:
                return

    async def _kill_all(self) -> None:
        """SIGKILL to everything below this process, also to what left its session, until nothing is left."""
        deadline = time.monotonic() + 2 * SETTLE_SECONDS
        while time.monotonic() < deadline:
            rest = procfs.below(os.getpid(), procfs.processes())
            children.kill(rest)
            if not rest and not self.table.running() and not self._settling:
                return
            await asyncio.sleep(POLL_SECONDS)
        log.error("processes that SIGKILL did not end: %s", procfs.below(os.getpid(), procfs.processes()))


def _set_from_thread(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(event.set)
