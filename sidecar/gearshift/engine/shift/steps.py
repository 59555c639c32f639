# SPDX-License-Identifier: Apache-2.0
"""Which tree runs a step, and the count of what ran. Pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum


class Mode(StrEnum):
    """Which tree runs a step."""

    TENSOR = "TP"
    SEQUENCE = "SP"


@dataclass
class Counters:
    """What happened since start."""

    steps: dict[Mode, int] = field(default_factory=lambda: dict.fromkeys(Mode, 0))
    tokens: dict[Mode, int] = field(default_factory=lambda: dict.fromkeys(Mode, 0))
    exchanged_bytes: int = 0  # sent by this rank to others in all-to-alls and gathers


@dataclass
class Steps:
    """The choice of one worker process."""

    threshold_tokens: int
    floor_tokens: int  # largest captured graph: steps up to it never reach the wrapper
    mode: Mode = Mode.TENSOR
    forced: Mode | None = None  # for warm-up and measuring
    counters: Counters = field(default_factory=Counters)

    def choose(self, scheduled_tokens: int) -> Mode:
        """Mode of a step; equal on all ranks, because all see the same scheduler output."""
        if self.forced is not None:
            return self.forced
        return Mode.SEQUENCE if scheduled_tokens > self.threshold_tokens else Mode.TENSOR

    @contextmanager
    def step(self, scheduled_tokens: int) -> Iterator[None]:
        """Within, `mode` is that of a step of so many tokens, which is counted."""
        self.mode = self.choose(scheduled_tokens)
        if scheduled_tokens:
            self.counters.steps[self.mode] += 1
            self.counters.tokens[self.mode] += scheduled_tokens
        try:
            yield
        finally:
            self.mode = Mode.TENSOR

    @contextmanager
    def force(self, mode: Mode) -> Iterator[None]:
        """Within, every forward runs in ``mode``."""
        before = (self.forced, self.mode)
        self.forced, self.mode = mode, mode
        try:
            yield
        finally:
            self.forced, self.mode = before

    def set_threshold(self, tokens: int) -> None:
        """Change the threshold.

        Raises:
            ValueError: below the largest captured graph, whose steps would bypass the choice.
        """
        if tokens < self.floor_tokens:
            raise ValueError(
                f"threshold_tokens: {tokens} is below the largest captured graph, {self.floor_tokens} tokens"
            )
        self.threshold_tokens = tokens
