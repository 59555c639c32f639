# SPDX-License-Identifier: Apache-2.0
"""Wait for a condition with a deadline, the only way in which this package lets time pass."""

import time
from collections.abc import Callable

from gscluster.errors import ClusterError


def wait_for(
    condition: Callable[[], bool], what: str, *, timeout_seconds: float, interval_seconds: float = 0.1
) -> None:
    """Return once `condition()` is true; raise ClusterError naming `what` when it is not within the time."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"waited {timeout_seconds:g} s in vain for {what}")
        time.sleep(interval_seconds)
