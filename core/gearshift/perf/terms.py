# SPDX-License-Identifier: Apache-2.0
"""Terms of time to first token and time per output token, each in seconds at the peak rates of the accelerator.

A calibration is one factor a term: about 1 where the engine reaches the peak, more where it does not. All terms and
factors are at least 0, so that more work never takes less time.
"""

from dataclasses import dataclass
from typing import Final

from gearshift.perf.deployment import WEIGHT_BYTES, Deployment, Workload
from gearshift.perf.hardware import Gpu, find_gpu
from gearshift.perf.models import ModelShape, find_model

MEMORY_SHARE: Final = 0.9
RESERVED_BYTES: Final = 4e9
MS: Final = 1e-3

TPOT_TERMS: Final = (
    "overhead", "dense weights", "expert weights", "collectives", "expert dispatch", "sequences", "compute", "kv read",
    "prefill compute", "prefill all-reduce", "prefill attention", "admission", "expert exchange",
)  # fmt: skip
TTFT_TERMS: Final = (
    "overhead", "compute", "all-reduce", "attention", "steps", "sequences", "queued compute", "queued all-reduce",
    "slot wait", "memory wait", "tokens", "queued tokens", "expert exchange", "rank steps", "rank wait",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scene:
    """A deployment under a load, with all that terms are counted from."""

    gpu: Gpu
    shape: ModelShape
    deployment: Deployment
    workload: Workload
    precision: str  # of the weights

    @property
    def weight_bytes(self) -> float:
        """Of one parameter."""
        return WEIGHT_BYTES[self.precision]

    @property
    def kv_bytes_per_token(self) -> float:
        """All layers; 16-bit weights come with a 16-bit cache, smaller ones with an 8-bit one."""
        return self.shape.layers * self.shape.kv_width * (2.0 if self.weight_bytes == 2 else 1.0)

    @property
    def kv_capacity_tokens(self) -> float:
        """Tokens that the KV caches of the engine hold; at least one."""
        usable = self.gpu.memory_bytes * MEMORY_SHARE - RESERVED_BYTES
        free = usable * self.deployment.gpus - self.shape.parameters * self.weight_bytes
        return max(1.0, free / self.kv_bytes_per_token)

    @property
    def running(self) -> float:
        """Requests that fit in the KV cache together, at their mean length; at least one."""
        length = self.workload.input_tokens + self.workload.output_tokens / 2
        return max(1.0, min(float(self.workload.concurrency), self.kv_capacity_tokens / length))

    @property
    def exchanges_experts(self) -> bool:
        """Whether tokens travel to the accelerators of their experts."""
        return self.shape.experts > 0 and (self.deployment.expert_parallel or 1) > 1

    @property
    def flop_per_second(self) -> float:
        """Of one accelerator."""
        return self.gpu.flop_per_second(self.weight_bytes)

    @property
    def prefill_compute_seconds(self) -> float:
        """Linear layers of one prompt over all accelerators."""
        flop = 2 * self.shape.active_parameters * self.workload.input_tokens
        return flop / (self.flop_per_second * self.deployment.gpus)

    @property
    def prefill_attention_seconds(self) -> float:
        """Attention of one prompt over its tensor-parallel group."""
        flop = 2 * self.shape.layers * self.shape.attention_width * self.workload.input_tokens**2
        return flop / (self.flop_per_second * self.deployment.tensor_parallel)

    @property
    def prefill_all_reduce_seconds(self) -> float:
        """Two all-reduces a layer of one prompt's activations, in 16 bits."""
        sent = 8 * self.workload.input_tokens * self.shape.layers * self.shape.attention_width
        return sent / self.gpu.link_bytes_per_second * (1 - 1 / self.deployment.gpus)


def scene(deployment: Deployment, workload: Workload, precision: str) -> Scene:
    """The scene of a question; ``precision`` stands in where the deployment names none.

    Raises:
        UnknownGpuError, UnknownModelError: nothing is known of the accelerator or the model.
    """
    gpu, shape = find_gpu(deployment.gpu), find_model(deployment.model)
    return Scene(gpu, shape, deployment, workload, deployment.precision or precision)


def tpot_terms(at: Scene) -> tuple[float, ...]:
    """Seconds by `TPOT_TERMS`: one decode step, and the prefills of other requests between two steps."""
    shape, deployment, load = at.shape, at.deployment, at.workload
    gpus, running, outputs = deployment.gpus, at.running, load.output_tokens
    bandwidth = at.gpu.memory_bytes_per_second
    dense = shape.dense_parameters * at.weight_bytes
    experts = (shape.parameters - shape.dense_parameters) * at.weight_bytes
    touched = shape.expert_share(load.concurrency)
    context = load.input_tokens + outputs / 2
    kv_bytes = running / deployment.attention_ranks * context * shape.layers * shape.kv_width * 2
    each = running / outputs  # prompts that arrive while one token of each request is made
    return (
        MS,
        dense / (bandwidth * gpus),
        experts * touched / (bandwidth * gpus),
        0.01 * MS * shape.layers if gpus > 1 else 0.0,
        0.01 * MS * shape.layers * touched,
        0.01 * MS * running,
        running * 2 * shape.active_parameters / (at.flop_per_second * gpus),
        kv_bytes / (bandwidth * deployment.tensor_parallel),
        each * at.prefill_compute_seconds,
        each * at.prefill_all_reduce_seconds,
        each * at.prefill_attention_seconds,
        each * MS,
        0.01 * MS * shape.layers if at.exchanges_experts else 0.0,
    )


def ttft_terms(at: Scene, tpot_seconds: float) -> tuple[float, ...]:
    """Seconds by `TTFT_TERMS`: the prompt's own prefill, those before it, and the waits.

    A prompt waits for a step, a slot or memory; with several attention ranks also for the ranks to begin prefills
    together, and for a slot at its own rank while another rank has one free.
    """
    load, running, ranks = at.workload, at.running, at.deployment.attention_ranks
    turn = load.output_tokens * tpot_seconds / running  # between the ends of two requests
    compute, reduced = at.prefill_compute_seconds, at.prefill_all_reduce_seconds
    return (
        10 * MS,
        compute,
        reduced,
        at.prefill_attention_seconds,
        tpot_seconds,
        MS * running,
        running * compute,
        running * reduced,
        turn,
        (load.concurrency - running) * turn,
        0.01 * MS * load.input_tokens,
        0.001 * MS * load.input_tokens * running,
        10 * MS if at.exchanges_experts else 0.0,
        10 * tpot_seconds if ranks > 1 else 0.0,
        (1 - 1 / ranks) * turn,
    )


def weigh(factors: tuple[float, ...], terms: tuple[float, ...]) -> float:
    """Sum of the terms, each by its factor."""
    return sum(factor * term for factor, term in zip(factors, terms, strict=True))
