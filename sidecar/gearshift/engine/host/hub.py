# SPDX-License-Identifier: Apache-2.0
"""Hands every event of the host to each open stream, and knows whether a sidecar listens."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gearshift.api.host import HostEvent

BACKLOG: Final = 1000
"""Events a stream may be behind; one that does not read is closed and has to connect again."""


class Stream:
    """One listener."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[HostEvent | None] = asyncio.Queue()
        self._closed = False

    def push(self, event: HostEvent | None) -> None:
        """Add an event; None ends the stream."""
        if self._closed:
            return
        if event is None or self._queue.qsize() >= BACKLOG:
            self._closed = True
            event = None
        self._queue.put_nowait(event)

    async def next(self, timeout_seconds: float) -> HostEvent | None:
        """The next event; a ``Beat`` when none came in time; None at the end."""
        try:
            return await asyncio.wait_for(self._queue.get(), timeout_seconds)
        except TimeoutError:
            return HostEvent(kind="Beat")


class Hub:
    """All listeners."""

    def __init__(self) -> None:
        self._streams: set[Stream] = set()
        self._closed = False
        self.absent_since = time.monotonic()
        self.changed = asyncio.Event()  # set whenever something happened that a waiting shutdown must look at

    def __len__(self) -> int:
        return len(self._streams)

    def publish(self, event: HostEvent) -> None:
        """Send an event to all listeners."""
        for stream in self._streams:
            stream.push(event)
        self.changed.set()

    def close(self) -> None:
        """End all streams, now and later."""
        self._closed = True
        for stream in self._streams:
            stream.push(None)

    @contextmanager
    def listen(self) -> Iterator[Stream]:
        """A stream of what happens from now on."""
        stream = Stream()
        if self._closed:
            stream.push(None)
        self._streams.add(stream)
        self.changed.set()
        try:
            yield stream
        finally:
            self._streams.discard(stream)
            if not self._streams:
                self.absent_since = time.monotonic()
            self.changed.set()
