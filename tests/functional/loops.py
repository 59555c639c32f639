# SPDX-License-Identifier: Apache-2.0
"""An event loop in a thread of its own, for servers that blocking tests talk to."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class LoopThread:
    """Runs coroutines in another thread until it is closed."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._loop = self._runner.get_loop()
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _T], seconds: float = 60.0) -> _T:
        """Result of a coroutine that runs in the thread; ``TimeoutError`` when it takes too long."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def call(self, function: Callable[[], Any]) -> None:
        """Have a function called soon."""
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """End the thread, and with it what still runs there: also a connection that came while its server closed."""
        self.call(self._end.set)
        self._thread.join(10)
        assert not self._thread.is_alive(), "a task of the loop does not end"

    def _live(self) -> None:
        with self._runner:
            self._runner.run(self._end.wait())
