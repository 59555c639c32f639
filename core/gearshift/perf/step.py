# SPDX-License-Identifier: Apache-2.0
"""Time of one engine step by layout: the one formula that everything else in this package follows from.

A step costs its overhead, the longer of reading the weights and computing its tokens, attention, and communication.
Tensor parallelism divides weights and compute and all-reduces every token; sequence parallelism divides the tokens,
reads whole weights on every rank, and pays two cheaper all-to-alls.
"""

from dataclasses import dataclass

from gearshift.api.vocabulary import Layout
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.profile import Profile


@dataclass(frozen=True, slots=True)
class StepLoad:
    """What one replica computes in one step."""

    prefill_tokens: int = 0
    context_pairs: int = 0  # sum over the prefill tokens of the tokens that each attends to
    decode_sequences: int = 0  # each decodes one token
    kv_tokens: int = 0  # sum over the decoding sequences of their context

    @property
    def tokens(self) -> int:
        """Scheduled tokens."""
        return self.prefill_tokens + self.decode_sequences


def prefill_load(tokens: int, computed_tokens: int = 0) -> StepLoad:
    """Load of a chunk of ``tokens`` of one prompt whose first ``computed_tokens`` are in the KV cache."""
    return StepLoad(prefill_tokens=tokens, context_pairs=tokens * computed_tokens + tokens * (tokens + 1) // 2)


def step_seconds(profile: Profile, arrangement: Arrangement, load: StepLoad) -> float:
    """Seconds that one replica of ``arrangement`` takes for ``load``."""
    if runs_sequence_parallel(arrangement, load.tokens):
        return _sequence_parallel_seconds(profile, arrangement, load)
    return _tensor_parallel_seconds(profile, arrangement.width, load)


def runs_sequence_parallel(arrangement: Arrangement, tokens: int) -> bool:
    """Whether a step of ``tokens`` scheduled tokens runs sequence parallel."""
    if arrangement.layout is Layout.SHIFT:
        return tokens > arrangement.shift_threshold_tokens
    return arrangement.layout is Layout.SP


def _tensor_parallel_seconds(profile: Profile, width: int, load: StepLoad) -> float:
    communication = load.tokens * profile.tensor_parallel_seconds * _all_reduce_share(width)
    launches = profile.eager_overhead_seconds if load.tokens > profile.graph_tokens else 0.0
    weights = _weights_seconds(profile, load) / width
    return _common_seconds(profile, width, load, weights) + launches + communication


def _sequence_parallel_seconds(profile: Profile, arrangement: Arrangement, load: StepLoad) -> float:
    ranks, base = arrangement.sequence_parallel_size, arrangement.base_tensor_parallel_size
    all_to_all = profile.sequence_parallel_seconds * (ranks - 1) / ranks
    all_reduce = profile.tensor_parallel_seconds * _all_reduce_share(base) / ranks  # of the rank's own tokens
    launches = profile.sequence_parallel_overhead_seconds
    weights = _weights_seconds(profile, load) / base
    return (
        _common_seconds(profile, arrangement.width, load, weights) + launches + load.tokens * (all_to_all + all_reduce)
    )


def _common_seconds(profile: Profile, width: int, load: StepLoad, weights_seconds: float) -> float:
    compute = load.tokens * profile.token_compute_seconds / width
    attention = (load.context_pairs * profile.context_pair_seconds + load.kv_tokens * profile.kv_read_seconds) / width
    per_sequence = load.decode_sequences * profile.sequence_seconds
    return profile.step_overhead_seconds + max(weights_seconds, compute) + attention + per_sequence


def _weights_seconds(profile: Profile, load: StepLoad) -> float:
    """To read what the tokens of a step pass through: everything but the experts that none of them picked."""
    untouched = (1 - profile.expert_pick_share) ** load.tokens if profile.expert_weight_share else 0.0
    return profile.weight_read_seconds * (1 - profile.expert_weight_share * untouched)


def _all_reduce_share(ranks: int) -> float:
    """Bytes that a ring all-reduce sends from each rank, by the size of the message."""
    return 2 * (ranks - 1) / ranks
