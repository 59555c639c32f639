# SPDX-License-Identifier: Apache-2.0
"""What one pod can do, as a performance model says it: the yardstick that demand is measured in."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineRates:
    """One pod in one layout, all its replicas together."""

    prefill_tokens_per_second: float  # computing nothing but prompts
    step_seconds: float  # of a decode step, without what its sequences add
    sequence_seconds: float  # that each decoding sequence adds to a step, over all replicas
    request_seconds: float  # that a request of usual lengths keeps a pod busy

    def work(self, prompt_tokens_per_second: float, generation_tokens_per_second: float) -> float:
        """Pods that these rates keep busy, the fixed part of decode steps aside."""
        prompts = prompt_tokens_per_second / self.prefill_tokens_per_second
        return prompts + generation_tokens_per_second * self.sequence_seconds

    def share(self, itl_seconds: float, most: float) -> float:
        """Share of a pod that may be busy while tokens come every ``itl_seconds``, at most ``most``; at least 0.05.

        A step takes ``step_seconds`` of the rest of the time, so tokens come every ``step_seconds / (1 - share)``.
        """
        return max(0.05, min(most, 1 - self.step_seconds / itl_seconds))

    def burst(self, work: float, request_seconds: float, seconds: float) -> float:
        """Standard deviation, in pods, of the work that arrives in ``seconds`` when ``work`` arrives on average.

        Requests of ``request_seconds`` each arrive at random: ``n`` of them vary by the square root of ``n``.
        """
        return math.sqrt(work * request_seconds / max(seconds, 0.001))
