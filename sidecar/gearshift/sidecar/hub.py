# SPDX-License-Identifier: Apache-2.0
"""Hands each new state line to every open stream; a reader that does not keep pace is given up, not buffered for."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

QUEUE_LINES: Final = 64


class Subscription:
    """One reader's lines that it has not taken yet."""

    def __init__(self, limit: int, abort: Callable[[], None]) -> None:
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(limit)
        self._abort = abort

    async def next(self) -> bytes:
        """The next line; empty when the stream is to end."""
        return await self._lines.get()

    def offer(self, line: bytes) -> bool:
        """Add a line; False when the reader is too far behind, whose connection is then cut."""
        try:
            self._lines.put_nowait(line)
        except asyncio.QueueFull:
            self._abort()
            return False
        return True


class Hub:
    """All open state streams."""

    def __init__(self, limit: int = QUEUE_LINES) -> None:
        self._limit = limit
        self._subscriptions: set[Subscription] = set()

    def __len__(self) -> int:
        return len(self._subscriptions)

    @contextmanager
    def subscribe(self, abort: Callable[[], None]) -> Iterator[Subscription]:
        """Receive lines while in the context; ``abort`` cuts the reader's connection."""
        subscription = Subscription(self._limit, abort)
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def publish(self, line: bytes) -> None:
        """Offer a line to every reader."""
        self._subscriptions = {item for item in self._subscriptions if item.offer(line)}

    def close(self) -> None:
        """End every stream."""
        self.publish(b"")
