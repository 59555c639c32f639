# SPDX-License-Identifier: Apache-2.0
"""How the accelerators of one pod are arranged: a layout with its sizes, checked once."""

from dataclasses import dataclass

from gearshift.api.vocabulary import Layout


class ArrangementError(ValueError):
    """Sizes that no engine could be started with. The message names the field and the value."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """One layout over the accelerators of one pod.

    Raises:
        ArrangementError: a size is below 1, or the sequence-parallel size does not divide the accelerators.
    """

    layout: Layout
    accelerators: int
    sequence_parallel_size: int
    shift_threshold_tokens: int = 0  # Shift: steps of more tokens run sequence parallel

    def __post_init__(self) -> None:
        if self.accelerators < 1:
            raise ArrangementError(f"accelerators: {self.accelerators} is below 1")
        if self.sequence_parallel_size < 1:
            raise ArrangementError(f"sequence parallel size: {self.sequence_parallel_size} is below 1")
        if self.accelerators % self.sequence_parallel_size:
            raise ArrangementError(
                f"sequence parallel size {self.sequence_parallel_size} does not divide accelerators {self.accelerators}"
            )
        if self.shift_threshold_tokens < 0:
            raise ArrangementError(f"shift threshold tokens: {self.shift_threshold_tokens} is below 0")

    @property
    def replicas(self) -> int:
        """Independent engines, each with its own queue and KV cache."""
        return self.accelerators if self.layout is Layout.DP else 1

    @property
    def width(self) -> int:
        """Accelerators of one replica."""
        return self.accelerators // self.replicas

    @property
    def base_tensor_parallel_size(self) -> int:
        """Tensor parallelism below the sequence parallelism."""
        return self.accelerators // self.sequence_parallel_size
