# SPDX-License-Identifier: Apache-2.0
"""How long steps take, by layout, without waiting for any of them."""

import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import torch


class StepClock(Protocol):
    """Sums the seconds of steps."""

    seconds: dict[str, float]
    """By layout; steps that the device has not finished yet are not in it."""

    def step(self, layout: str) -> AbstractContextManager[None]:
        """Within, one step of this layout runs."""


class WallClock:
    """For a device that computes in the calling thread."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def step(self, layout: str) -> Iterator[None]:
        """See `StepClock`."""
        begin = time.perf_counter()
        yield
        self.seconds[layout] += time.perf_counter() - begin


class DeviceClock:
    """For CUDA: a pair of events a step on the current stream, read once the device has passed them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._pending: deque[tuple[str, Any, Any]] = deque()

    @contextmanager
    def step(self, layout: str) -> Iterator[None]:
        """See `StepClock`."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        yield
        end.record()
        self._pending.append((layout, begin, end))
        while self._pending and self._pending[0][2].query():
            layout, begin, end = self._pending.popleft()
            self.seconds[layout] += begin.elapsed_time(end) / 1000


def step_clock(device: str) -> StepClock:
    """The clock for a device type."""
    return DeviceClock() if device == "cuda" else WallClock()
