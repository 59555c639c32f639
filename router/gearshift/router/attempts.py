# SPDX-License-Identifier: Apache-2.0
"""The failed attempts of one request, and what follows from them: whom to avoid, how long to pause, when to give up."""

import asyncio
from collections.abc import Collection
from typing import Final

from gearshift.router.fleet import Pod
from gearshift.router.upstream import AttemptError, Reason

LOST_ATTEMPTS: Final = 3  # that an engine may have begun: a request that kills engines must not go through all of them
PAUSE_SECONDS: Final = (0.05, 1.0)  # first and longest pause before a pod that failed is tried again


class Attempts:
    """What has failed so far."""

    def __init__(self) -> None:
        self._last: dict[Pod, AttemptError] = {}
        self._refused = 0
        self._lost = 0
        self._wait_until: float | None = None

    def failed(self, error: AttemptError) -> bool:
        """Take note; True when this failure says something new."""
        before = self._last.get(error.pod)
        self._last[error.pod] = error
        if error.reason is Reason.RESET:
            self._lost += 1
            self._wait_until = None
        else:
            self._refused += 1
        return before is None or before.reason is not error.reason

    @property
    def pods(self) -> Collection[Pod]:
        """Pods to avoid while there are others."""
        return self._last

    @property
    def exhausted(self) -> bool:
        """Whether engines were lost so often that the request itself may be the cause."""
        return self._lost >= LOST_ATTEMPTS

    @property
    def waited(self) -> bool:
        """Whether the request has been waiting."""
        return self._wait_until is not None

    @property
    def told(self) -> str:
        """Every pod that failed, and why; empty when none did."""
        return "; ".join(f"pod {pod.endpoint.name}: {error.reason.value}" for pod, error in self._last.items())

    @property
    def pause_seconds(self) -> float:
        """How long to wait before a pod that failed is tried again."""
        failures = self._refused + self._lost
        if failures == 0:
            return 0.0
        first, longest = PAUSE_SECONDS
        return min(longest, first * 2.0 ** min(failures - 1, 16))

    def wait_until(self, patience_seconds: float) -> float:
        """When waiting ends, on the event loop's clock: so long after it began. An engine that is lost in the middle
        of an attempt begins it anew.
        """
        if self._wait_until is None:
            self._wait_until = asyncio.get_running_loop().time() + patience_seconds
        return self._wait_until
