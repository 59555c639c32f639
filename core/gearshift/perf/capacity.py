# SPDX-License-Identifier: Apache-2.0
"""What a pod can hold and do by layout: KV tokens, prefill rate, inter-token latency, start-up and transfer times."""

from dataclasses import dataclass, replace

from gearshift.api.vocabulary import Layout
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.profile import Profile
from gearshift.perf.step import StepLoad, prefill_load, step_seconds

_MAX_THRESHOLD_TOKENS = 1 << 16


@dataclass(frozen=True, slots=True)
class ItlLine:
    """Inter-token latency over the used share of the KV cache: ``slope_seconds * usage + intercept_seconds``."""

    slope_seconds: float
    intercept_seconds: float

    def at(self, usage: float) -> float:
        """Seconds at a used share of 0..1."""
        return self.slope_seconds * usage + self.intercept_seconds


def kv_capacity_tokens(profile: Profile, arrangement: Arrangement) -> int:
    """KV tokens that one replica holds; 0 when the weights alone do not fit."""
    usable = profile.accelerator_memory_bytes * profile.memory_utilization - profile.reserved_bytes
    free = arrangement.width * usable - weight_copies(arrangement) * profile.weight_bytes
    return max(0, int(free / profile.kv_bytes_per_token))


def weight_copies(arrangement: Arrangement) -> int:
    """Full copies of the weights that one replica holds over all its accelerators."""
    if arrangement.layout is Layout.SHIFT:
        return arrangement.sequence_parallel_size + 1
    return arrangement.sequence_parallel_size if arrangement.layout is Layout.SP else 1


def prefill_seconds(profile: Profile, arrangement: Arrangement, prompt_tokens: int, chunk_tokens: int = 8192) -> float:
    """Seconds that an idle replica takes to the first token of one prompt."""
    chunks = range(0, prompt_tokens, chunk_tokens)
    loads = (prefill_load(min(chunk_tokens, prompt_tokens - start), start) for start in chunks)
    return sum(step_seconds(profile, arrangement, load) for load in loads)


def prefill_tokens_per_second(
    profile: Profile, arrangement: Arrangement, prompt_tokens: int, chunk_tokens: int = 8192
) -> float:
    """Prompt tokens per second of a whole pod that computes full chunks of prompts of ``prompt_tokens``."""
    pairs_per_token = (prompt_tokens + 1) / 2
    load = StepLoad(prefill_tokens=chunk_tokens, context_pairs=int(chunk_tokens * pairs_per_token))
    return arrangement.replicas * chunk_tokens / step_seconds(profile, arrangement, load)


def itl_seconds(profile: Profile, arrangement: Arrangement, sequences: int, context_tokens: int) -> float:
    """Inter-token latency of a pod that decodes ``sequences`` sequences of ``context_tokens`` each and no prompt."""
    busiest = -(-sequences // arrangement.replicas)
    load = StepLoad(decode_sequences=busiest, kv_tokens=busiest * context_tokens)
    return step_seconds(profile, arrangement, load)


def itl_line(profile: Profile, arrangement: Arrangement, context_tokens: int) -> ItlLine:
    """Inter-token latency by KV usage for sequences of ``context_tokens``, through one sequence and a full cache."""
    capacity = kv_capacity_tokens(profile, arrangement)
    full = max(2, capacity // max(1, context_tokens)) * arrangement.replicas
    low, high = (itl_seconds(profile, arrangement, n, context_tokens) for n in (arrangement.replicas, full))
    slope = (high - low) / (1 - arrangement.replicas / full)
    return ItlLine(slope_seconds=slope, intercept_seconds=high - slope)


def shift_threshold_tokens(profile: Profile, accelerators: int, sequence_parallel_size: int) -> int:
    """Most tokens of a step that tensor parallelism still computes faster than sequence parallelism."""
    tensor = Arrangement(Layout.TP, accelerators, sequence_parallel_size)
    sequence = replace(tensor, layout=Layout.SP)
    low, high = 0, _MAX_THRESHOLD_TOKENS
    while low < high:
        middle = (low + high + 1) // 2
        load = prefill_load(middle)
        if step_seconds(profile, tensor, load) < step_seconds(profile, sequence, load):
            low = middle
        else:
            high = middle - 1
    return low


def startup_seconds(profile: Profile, layout: Layout) -> float:
    """Seconds from the start of the process to ready."""
    return profile.startup_seconds[layout]


def transfer_seconds(profile: Profile, accelerators: int, tokens: int) -> float:
    """Seconds to bring the KV of ``tokens`` from another pod, over the links of all accelerators."""
    return tokens * profile.kv_bytes_per_token / (accelerators * profile.transfer_bytes_per_second)
