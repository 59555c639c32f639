# SPDX-License-Identifier: Apache-2.0
"""How long a process that keeps ending waits before its next start."""


class Backoff:
    """Doubling delay, forgotten after a long run. Times are seconds."""

    def __init__(self, first: float, most: float, reset_after: float) -> None:
        self._first = first
        self._most = most
        self._reset_after = reset_after
        self._failures = 0

    def after(self, ran: float) -> float:
        """Delay before the next start of a process that ran for ``ran`` seconds."""
        if ran >= self._reset_after:
            self._failures = 0
        delay = min(self._most, self._first * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return delay
