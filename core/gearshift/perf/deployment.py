# SPDX-License-Identifier: Apache-2.0
"""What is asked of the calibrated model: how a model is deployed, and the load it is under."""

from dataclasses import dataclass, fields

WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.55, "int4_wo": 0.55}
"""Bytes a parameter by precision, scales included."""


class WorkloadError(ValueError):
    """Sizes that no engine could serve. The message names the field and the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One engine. Left out (None) is what the measurements mostly used.

    Raises:
        WorkloadError: a size is below 1, or the precision is unknown.
    """

    gpu: str
    backend: str
    model: str
    tensor_parallel: int = 1
    data_parallel: int = 1  # attention ranks that each have their own requests
    expert_tensor_parallel: int | None = None  # of mixtures of experts
    expert_parallel: int | None = None
    precision: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        _positive(self, "tensor_parallel", "data_parallel", "expert_tensor_parallel", "expert_parallel")
        if self.precision is not None and self.precision not in WEIGHT_BYTES:
            raise WorkloadError(f"precision {self.precision!r} is unknown; known: {', '.join(sorted(WEIGHT_BYTES))}")

    @property
    def gpus(self) -> int:
        """Accelerators of the engine."""
        experts = (self.expert_tensor_parallel or 1) * (self.expert_parallel or 1)
        return max(self.tensor_parallel * self.data_parallel, experts)

    @property
    def attention_ranks(self) -> int:
        """Attention groups, each with its own requests."""
        return max(1, self.gpus // self.tensor_parallel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A constant number of requests of one shape, over the whole engine.

    Raises:
        WorkloadError: a field is below 1.
    """

    concurrency: int
    input_tokens: int
    output_tokens: int

    def __post_init__(self) -> None:
        _positive(self, *(field.name for field in fields(self)))


def _positive(thing: object, *names: str) -> None:
    for name in names:
        value = getattr(thing, name)
        if value is not None and value < 1:
            raise WorkloadError(f"{name.replace('_', ' ')}: {value} is below 1")
