# SPDX-License-Identifier: Apache-2.0
"""One request on its way through the fleet, and what its client saw."""

from gearshift.sim.load.arrivals import Arrival


class Request:
    """Lengths in tokens, times in seconds of the trace. ``failed`` says why it was not served to its end."""

    __slots__ = (
        "arrived_at", "context_tokens", "failed", "finish_step", "finished_at", "first_token_at", "generated",
        "output_tokens", "prefix_ids", "prompt_left", "prompt_tokens", "started",
    )  # fmt: skip

    def __init__(self, arrival: Arrival) -> None:
        self.arrived_at = arrival.at_seconds
        self.prompt_tokens = arrival.prompt_tokens
        self.output_tokens = arrival.output_tokens
        self.prompt_left = arrival.prompt_tokens  # tokens that no pod has computed yet
        self.context_tokens = 0  # tokens in the KV cache
        self.generated = 0
        self.finish_step = 0  # step of its replica that makes its last token
        self.started = False  # the prefix cache has been asked
        self.prefix_ids = arrival.prefix_ids
        self.first_token_at: float | None = None
        self.finished_at: float | None = None
        self.failed = ""

    @property
    def ttft_seconds(self) -> float | None:
        """Arrival to first token."""
        return None if self.first_token_at is None else self.first_token_at - self.arrived_at

    @property
    def itl_seconds(self) -> float | None:
        """Mean time between its tokens; 0 for a single one, None until it has ended."""
        if self.finished_at is None or self.first_token_at is None:
            return None
        return (self.finished_at - self.first_token_at) / max(1, self.output_tokens - 1)

    def good(self, ttft_objective_seconds: float, itl_objective_seconds: float) -> bool:
        """Served to its end within both objectives."""
        ttft, itl = self.ttft_seconds, self.itl_seconds
        if self.failed or ttft is None or itl is None:
            return False
        return ttft <= ttft_objective_seconds and itl <= itl_objective_seconds

    def restart(self) -> None:
        """Forget the KV: everything so far is prompt again."""
        self.prompt_left = self.prompt_tokens + self.generated
        self.context_tokens = 0
        self.started = False
