# SPDX-License-Identifier: Apache-2.0
"""How soon a service is looked at again: at once after a change, seldom while quiet, ever later after failures."""

import asyncio
import math
import random
import time
from collections.abc import Callable
from typing import Final

from gearshift.policy.snapshot import Snapshot

_COALESCE_SECONDS: Final = 0.1
_LONGEST_COALESCE_SECONDS: Final = 2.0
_BUSY_SECONDS: Final = 0.4  # while something is on its way that no watch tells of
_BUSY_FOR_SECONDS: Final = 60.0  # a pod that is ready and says for longer that it does not serve is no news
_BACKOFF_SECONDS: Final = (0.5, 15.0)


class Pace:
    """Pauses of one reconciler."""

    def __init__(self, tick_seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._tick_seconds = tick_seconds
        self._clock = clock
        self._failures = 0
        self._took_seconds = 0.0
        self._ended_at = -math.inf  # of the last look

    async def rest(self, wake: asyncio.Event, pause: float) -> None:
        """Wait for a change and for others of its kind, at most ``pause`` seconds; after a failure the whole pause."""
        if self._failures:
            await asyncio.sleep(pause)
            return
        try:
            async with asyncio.timeout(pause):
                await wake.wait()
        except TimeoutError:
            return
        await asyncio.sleep(self.gathering())

    def gathering(self) -> float:
        """How long a change of now waits for others, in seconds.

        At least until the last look is over for as long as it took, so that a service whose pods keep changing takes
        half of the time at most.
        """
        rested = self._clock() - self._ended_at
        return max(_COALESCE_SECONDS, min(self._took_seconds, _LONGEST_COALESCE_SECONDS) - rested)

    def looked(self, began: float) -> float:
        """Note the end of a look that began at a time of the clock; its length in seconds."""
        self._ended_at = self._clock()
        self._took_seconds = self._ended_at - began
        return self._took_seconds

    def succeeded(self) -> None:
        """Forget earlier failures."""
        self._failures = 0

    def failed(self) -> float:
        """Pause after a failure, in seconds: longer after each, with jitter."""
        self._failures += 1
        first, most = _BACKOFF_SECONDS
        return min(first * 2.0 ** min(self._failures - 1, 16), most) * _jitter(0.3)

    def quiet(self, round_seconds: float = 0.0) -> float:
        """Pause after a look that found nothing to do, in seconds; at least ``round_seconds``, which others leave."""
        return max(self._tick_seconds, round_seconds) * _jitter(0.1)

    def busy(self) -> float:
        """Pause while something is on its way, in seconds."""
        return min(_BUSY_SECONDS, self._tick_seconds)


def settling(snapshot: Snapshot) -> bool:
    """A pod that the kubelet calls ready does not serve yet, and may at any moment."""
    return any(
        pod.ready and not pod.serving and not pod.deleting and snapshot.at - pod.since < _BUSY_FOR_SECONDS
        for pod in snapshot.pods
    )


def _jitter(share: float) -> float:
    return random.uniform(1 - share, 1 + share)  # noqa: S311 - spreads load, guards nothing
