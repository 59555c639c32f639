# SPDX-License-Identifier: Apache-2.0
"""One task a service: started when a service is seen, ended when it is gone."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gearshift.operator.index import Index
from gearshift.operator.reconciler import Reconciler

_STOP_SECONDS: Final = 5.0
_log = logging.getLogger(__name__)


class Fleet:
    """Reconcilers by uid of their service. Does nothing until it is started."""

    def __init__(self) -> None:
        self._make: Callable[[str], Reconciler] | None = None
        self._reconcilers: dict[str, Reconciler] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._index: Index | None = None

    def start(self, index: Index, make: Callable[[str], Reconciler]) -> None:
        """Begin with all services that the index knows; ``make`` gives the reconciler of a uid."""
        self._index, self._make = index, make
        for uid in list(index.services):
            self.wake(uid)

    def wake(self, uid: str) -> None:
        """Something about a service changed."""
        if self._index is None:
            return
        reconciler = self._reconcilers.get(uid)
        if reconciler is not None:
            reconciler.wake.set()
        elif self._alive(uid):
            self._spawn(uid)

    async def stop(self) -> None:
        """End all tasks; a write that is on its way is given up, and so is a task that does not end."""
        self._index = None
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)

    def _alive(self, uid: str) -> bool:
        body = None if self._index is None else self._index.services.get(uid)
        return body is not None and not body["metadata"].get("deletionTimestamp")

    def _spawn(self, uid: str) -> None:
        if self._make is None:
            return
        reconciler = self._make(uid)
        self._reconcilers[uid] = reconciler
        task = asyncio.create_task(reconciler.run(), name=f"reconcile {uid}")
        self._tasks[uid] = task
        task.add_done_callback(lambda done: self._ended(uid, done))

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        self._reconcilers.pop(uid, None)
        self._tasks.pop(uid, None)
        if not task.cancelled() and task.exception() is not None:
            _log.error("reconciler of %s ended: %r", uid, task.exception())
        if self._index is not None:
            self._index.forget(uid)
            if self._alive(uid):
                self._spawn(uid)
