# SPDX-License-Identifier: Apache-2.0
"""What one pod counts, as vLLM does: counters and histograms that only grow."""

from bisect import bisect_left
from typing import Final

TTFT_BOUNDS: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0,
    2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
ITL_BOUNDS: Final = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip


class Counters:
    """Counters of one pod since its start."""

    __slots__ = ("cached_tokens", "generation_tokens", "itl", "preemptions", "prompt_tokens", "requests", "ttft")

    def __init__(self) -> None:
        self.requests = 0  # that have got their first token
        self.prompt_tokens = 0
        self.cached_tokens = 0  # of the prompt tokens, those whose KV was there already
        self.generation_tokens = 0
        self.preemptions = 0
        self.ttft = [0] * (len(TTFT_BOUNDS) + 1)
        self.itl = [0] * (len(ITL_BOUNDS) + 1)

    def first_token(self, ttft_seconds: float) -> None:
        """A request has got its first token."""
        self.ttft[bisect_left(TTFT_BOUNDS, ttft_seconds)] += 1
        self.requests += 1

    def tokens(self, count: int, step_seconds: float) -> None:
        """``count`` tokens of running requests, each ``step_seconds`` after the one before."""
        self.itl[bisect_left(ITL_BOUNDS, step_seconds)] += count
        self.generation_tokens += count
