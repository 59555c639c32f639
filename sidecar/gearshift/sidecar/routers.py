# SPDX-License-Identifier: Apache-2.0
"""Which routers a pod has and what each of them has confirmed, so that a drain can wait for exactly those."""

import asyncio
from dataclasses import dataclass

from gearshift.api.wire import Ack


@dataclass(slots=True)
class RouterView:
    """One router process as this pod knows it."""

    name: str
    streams: int = 0  # state streams it holds
    sequence: int = -1  # newest state it acts on; -1: it has confirmed nothing
    in_flight: int = 0
    heard_at: float = 0.0  # last ack, or when its stream began or ended


class Routers:
    """All routers known to a pod. Times are monotonic seconds."""

    def __init__(self, linger_seconds: float) -> None:
        self._linger_seconds = linger_seconds
        self._views: dict[str, RouterView] = {}
        self._changed = asyncio.Event()
        self._return_until = float("-inf")

    def expect_return(self, until: float) -> None:
        """Until this time routers may be missing that an earlier sidecar of this pod knew."""
        self._return_until = until

    def missing(self, now: float) -> list[str]:
        """Why the routers known are perhaps not all of them; empty when they are."""
        if now >= self._return_until:
            return []
        return ["routers may still come back to this sidecar, which has just restarted"]

    def opened(self, name: str, now: float) -> None:
        """A router has opened a state stream."""
        self.known(now)  # a pod that never drains forgets the routers of its past here
        view = self._view(name)
        view.streams += 1
        self._heard(view, now)

    def closed(self, name: str, now: float) -> None:
        """A router's state stream has ended."""
        view = self._view(name)
        view.streams -= 1
        self._heard(view, now)

    def acked(self, ack: Ack, now: float) -> None:
        """A router has confirmed a state; an older word that arrives late counts for nothing."""
        view = self._view(ack.router)
        if ack.sequence >= view.sequence:
            view.sequence = ack.sequence
            view.in_flight = ack.in_flight
        self._heard(view, now)

    def known(self, now: float) -> list[RouterView]:
        """Routers that count: they hold a stream, or were heard of within the linger time."""
        gone = [name for name, view in self._views.items() if not self._counts(view, now)]
        for name in gone:
            del self._views[name]
        return list(self._views.values())

    def connected(self) -> int:
        """Number of routers that hold a stream."""
        return sum(view.streams > 0 for view in self._views.values())

    async def wait_change(self, timeout: float) -> None:
        """Return at the next change, or after ``timeout`` seconds."""
        changed = self._changed
        try:
            async with asyncio.timeout(timeout):
                await changed.wait()
        except TimeoutError:
            return

    def _view(self, name: str) -> RouterView:
        return self._views.setdefault(name, RouterView(name))

    def _heard(self, view: RouterView, now: float) -> None:
        view.heard_at = now
        self._changed.set()
        self._changed = asyncio.Event()

    def _counts(self, view: RouterView, now: float) -> bool:
        return view.streams > 0 or now - view.heard_at <= self._linger_seconds


def unconfirmed(views: list[RouterView], sequence: int) -> list[str]:
    """Names of the routers that do not act on ``sequence`` yet."""
    return sorted(view.name for view in views if view.sequence < sequence)


def blockers(views: list[RouterView], sequence: int) -> list[str]:
    """Why the routers keep a drain waiting, one phrase a router; empty when none does."""
    waiting = [f"router {name} has not confirmed state {sequence}" for name in unconfirmed(views, sequence)]
    owing = [
        f"router {view.name} waits for {view.in_flight} requests"
        for view in sorted(views, key=lambda item: item.name)
        if view.sequence >= sequence and view.in_flight > 0
    ]
    return waiting + owing
