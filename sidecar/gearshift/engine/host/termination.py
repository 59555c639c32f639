# SPDX-License-Identifier: Apache-2.0
"""When a terminating host may stop its engines: the pure part of the SIGTERM choreography.

The kubelet signals the engine container first and the native sidecar only after it has exited. So the host must hold on
until the sidecar has unpublished the pod and drained it, unless there is no sidecar to wait for.
"""

from dataclasses import dataclass
from typing import Final, Literal

ABSENT_SIDECAR_SECONDS: Final = 3.0
"""A restarting sidecar connects again within this time; after it the host goes on alone."""

Why = Literal["SidecarDone", "NothingRuns", "GracePassed", "NoSidecar"]


@dataclass(frozen=True)
class View:
    """What the decision may know; times are of one monotonic clock."""

    now: float
    sidecars: int  # open event streams
    absent_since: float  # when the last stream was closed, or the host started
    running: int  # engine processes alive
    ordered: bool  # POST /v1/shutdown was received


@dataclass(frozen=True)
class Termination:
    """A SIGTERM that was received at ``began``."""

    began: float
    grace_seconds: float

    def left(self, now: float) -> float:
        """Seconds until the host stops everything by itself."""
        return max(0.0, self.began + self.grace_seconds - now)

    def stop_because(self, view: View) -> Why | None:
        """The reason to stop the engines now; None while there is something to wait for."""
        if view.ordered:
            return "SidecarDone"
        if view.running == 0:
            return "NothingRuns"
        if self.left(view.now) <= 0:
            return "GracePassed"
        if self._absence_left(view) <= 0:
            return "NoSidecar"
        return None

    def next_look(self, view: View) -> float:
        """Seconds until time alone may change the answer."""
        return min(self.left(view.now), self._absence_left(view))

    def _absence_left(self, view: View) -> float:
        if view.sidecars > 0:
            return float("inf")
        return max(view.absent_since, self.began) + ABSENT_SIDECAR_SECONDS - view.now
