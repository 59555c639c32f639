# SPDX-License-Identifier: Apache-2.0
"""The engine host's processes as this sidecar last heard of them, kept up to date over the host's event stream."""

import asyncio
import logging
from collections.abc import Callable

from gearshift.api.host import HostEvent, ProcessStatus
from gearshift.sidecar.host_client import HostCallError, HostClient
from gearshift.sidecar.settings import Timings

log = logging.getLogger(__name__)


class HostWatch:
    """Follows the host for ever; `run` is its only task."""

    def __init__(self, host: HostClient, timings: Timings) -> None:
        self._host = host
        self._timings = timings
        self._changed = asyncio.Event()
        self._said = ""
        self.processes: dict[str, ProcessStatus] = {}
        self.connected = asyncio.Event()
        self.terminating = False

    async def run(self, on_terminating: Callable[[float | None], None]) -> None:
        """Follow the event stream, again and again: an engine container may start late, or anew.

        ``on_terminating`` is told the seconds left to drain, or None when they are unknown.
        """
        while True:
            try:
                async for event in self._host.events(self._timings.host_beat):
                    await self._take(event, on_terminating)
                self._lose("the event stream ended", absent=False)
            except HostCallError as error:
                self._lose(str(error), absent=error.absent)
            await asyncio.sleep(self._timings.host_retry)

    async def wait_exit(self, name: str, pid: int) -> ProcessStatus | None:
        """Return when that process no longer runs: its last status, or None when the host has forgotten it."""
        while True:
            changed = self._changed
            status = self.processes.get(name)
            if status is None or status.pid != pid:
                return None
            if status.state == "Exited":
                return status
            await changed.wait()

    def note(self, status: ProcessStatus) -> None:
        """Take over what the host answered about one process."""
        self.processes[status.name] = status
        self._notify()

    async def _take(self, event: HostEvent, on_terminating: Callable[[float | None], None]) -> None:
        if event.kind == "Hello":
            if await self._refresh():
                on_terminating(None)
        elif event.kind == "Terminating":
            self.terminating = True
            on_terminating(event.grace_seconds)
        elif event.process is not None:
            self.note(event.process)

    async def _refresh(self) -> bool:
        """Take over the host's list; True when that tells of a termination not heard of yet."""
        listed = await self._host.processes()
        self.processes = {status.name: status for status in listed.processes}
        self.connected.set()
        self._said = ""
        self._notify()
        news = listed.terminating and not self.terminating
        self.terminating = self.terminating or listed.terminating
        return news

    def _lose(self, why: str, *, absent: bool) -> None:
        """Without a listener on the socket the engine container is gone, and its processes with it."""
        self.connected.clear()
        if absent and self.processes:
            self.processes = {}
            self._notify()
        if why != self._said:
            log.warning("engine host: %s", why)
            self._said = why

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
