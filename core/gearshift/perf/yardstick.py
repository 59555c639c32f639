# SPDX-License-Identifier: Apache-2.0
"""What one pod can do in one layout, in the few numbers that sizing needs, from a profile or from measurements.

Prompts of `PROMPT_TOKENS` stand for all: rates change little with their length as long as compute is the limit.
"""

from dataclasses import dataclass, replace
from typing import Final

from gearshift.api.vocabulary import Layout
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.capacity import itl_seconds, prefill_tokens_per_second
from gearshift.perf.deployment import Deployment, Workload
from gearshift.perf.predict import Prediction, predict
from gearshift.perf.profile import Profile

PROMPT_TOKENS: Final = 2048
OUTPUT_TOKENS: Final = 256
SEQUENCES: Final = 33  # of one replica: enough to tell what each adds to a step
CHUNK_TOKENS: Final = 8192


@dataclass(frozen=True, slots=True)
class Throughput:
    """One pod, all its replicas together."""

    prefill_tokens_per_second: float  # computing nothing but prompts
    step_seconds: float  # of a decode step, without what its sequences add
    sequence_seconds: float  # that each decoding sequence adds to a step, over all replicas

    @property
    def request_seconds(self) -> float:
        """That a request of usual lengths keeps the pod busy."""
        return PROMPT_TOKENS / self.prefill_tokens_per_second + OUTPUT_TOKENS * self.sequence_seconds


def by_profile(profile: Profile, at: Arrangement, chunk_tokens: int = CHUNK_TOKENS) -> Throughput:
    """By the times of engine steps."""
    first = itl_seconds(profile, at, at.replicas, PROMPT_TOKENS)
    many = itl_seconds(profile, at, SEQUENCES * at.replicas, PROMPT_TOKENS)
    each = (many - first) / (SEQUENCES - 1)
    prefill = prefill_tokens_per_second(profile, at, PROMPT_TOKENS, chunk_tokens)
    return Throughput(prefill, first - each, each / at.replicas)


def by_measurements(deployment: Deployment, layout: Layout) -> Throughput | None:
    """By measured deployments; None when nothing like it was measured or the weights leave no room.

    ``deployment`` names GPU, backend, model, precision and, as ``tensor_parallel``, the accelerators of the pod.

    Raises:
        UnknownGpuError, UnknownModelError, UnknownCalibrationError: nothing is known of the combination.
    """
    if layout not in (Layout.TP, Layout.DP):
        return None
    replicas = deployment.tensor_parallel if layout is Layout.DP else 1
    one = replace(deployment, tensor_parallel=deployment.tensor_parallel // replicas)
    first, many = (_steady(one, sequences) for sequences in (1, SEQUENCES))
    if many.running < SEQUENCES:
        return None
    each = max(0.0, many.tpot_seconds - first.tpot_seconds) / (SEQUENCES - 1)
    prompt = predict(one, Workload(concurrency=1, input_tokens=CHUNK_TOKENS, output_tokens=PROMPT_TOKENS))
    prefill = replicas * CHUNK_TOKENS / prompt.ttft_seconds
    return Throughput(prefill, first.tpot_seconds - each, each / replicas)


def _steady(deployment: Deployment, sequences: int) -> Prediction:
    """Mostly decoding: with answers as long as prompts, few prompts are computed between two steps."""
    return predict(deployment, Workload(concurrency=sequences, input_tokens=PROMPT_TOKENS, output_tokens=PROMPT_TOKENS))
