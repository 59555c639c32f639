# SPDX-License-Identifier: Apache-2.0
"""Terms of the step time of a `Profile`, counted in the limits of a data sheet, so that measurements can weigh them.

Unlike the terms of a prediction they are those of `step.step_seconds`: what one engine step costs, whatever the load,
so that a simulated engine can run on them. The waits of a request follow from its scheduler.
"""

from typing import Final

from gearshift.perf.terms import MS, Scene

STEP_TERMS: Final = ("overhead", "weights", "kv read", "sequences", "compute", "all-reduce", "launches")
CHUNK_TOKENS: Final = 8192
PAIR_SHARE: Final = 550 / 1979
"""Share of the 8-bit peak that prefill attention reaches in 16 bits; too small a part of a step to be fitted."""


def units(at: Scene) -> tuple[float, ...]:
    """Seconds by `STEP_TERMS` of one accelerator: of a step, all weights, or one token."""
    return (
        MS,
        at.shape.parameters * at.weight_bytes / at.gpu.memory_bytes_per_second,
        at.kv_bytes_per_token / at.gpu.memory_bytes_per_second,
        0.01 * MS,
        2 * at.shape.active_parameters / at.flop_per_second,
        4 * at.shape.layers * at.shape.attention_width / at.gpu.link_bytes_per_second,
        MS,
    )


def pair_seconds(at: Scene) -> float:
    """Prefill attention of one token over one token before it, on one accelerator."""
    return 4 * at.shape.layers * at.shape.attention_width / (PAIR_SHARE * at.gpu.fp8_flop_per_second)


def decode_counts(at: Scene) -> tuple[float, ...]:
    """Units of one decode step by `STEP_TERMS`, with its share of the prompts of other requests but their attention."""
    load, width = at.workload, at.deployment.tensor_parallel
    prompts = prompts_per_step(at)
    own = prompt_counts(at)
    context = load.input_tokens + load.output_tokens / 2
    return (
        1.0,
        _read_share(at) / width,
        at.running * context / width,
        at.running,
        prompts * own[4],
        prompts * own[5] + at.running * _all_reduce_share(width),
        prompts * own[6],
    )


def prompt_counts(at: Scene) -> tuple[float, ...]:
    """Units of the prefill of one prompt by `STEP_TERMS`, but its attention."""
    tokens, width = at.workload.input_tokens, at.deployment.tensor_parallel
    steps = max(1.0, tokens / CHUNK_TOKENS)
    return (steps, 0.0, 0.0, 0.0, tokens / width, tokens * _all_reduce_share(width), steps)


def prompts_per_step(at: Scene) -> float:
    """Prompts that arrive while one token of each running request is made."""
    return at.running / at.workload.output_tokens


def prompt_attention_seconds(at: Scene) -> float:
    """Attention of one prompt over its tensor-parallel group."""
    tokens = at.workload.input_tokens
    return tokens * (tokens + 1) / 2 * pair_seconds(at) / at.deployment.tensor_parallel


def _read_share(at: Scene) -> float:
    dense = at.shape.dense_parameters / at.shape.parameters
    return dense + (1 - dense) * at.shape.expert_share(at.workload.concurrency)


def _all_reduce_share(ranks: int) -> float:
    return 2 * (ranks - 1) / ranks
