# SPDX-License-Identifier: Apache-2.0
"""State of the shift engine in one worker process: its groups, and the choice of every step."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from vllm.distributed import parallel_state
from vllm.distributed.parallel_state import GroupCoordinator

from gearshift.engine.shift.ranks import RankPlan
from gearshift.engine.shift.steps import Steps
from gearshift.engine.shift.transport import Collective, Transport


@dataclass
class Groups:
    """Process groups of this rank."""

    tensor: GroupCoordinator  # all ranks: the group of the TP tree
    sequence: GroupCoordinator
    base_tensor: GroupCoordinator

    @classmethod
    def create(cls, plan: RankPlan) -> "Groups":
        """Make both groups; every rank must call this at the same point, because it is collective."""
        tensor = parallel_state.get_tp_group()
        local_rank = parallel_state.get_world_group().local_rank
        backend = dist.get_backend(tensor.device_group)
        # CPU coordinators whose name begins with "tp" use shared memory of the whole world: these names must not.
        make = parallel_state.init_model_parallel_group
        base = make(plan.base_tensor_groups(), local_rank, backend, group_name="shift_base_tp")
        sequence = make(plan.sequence_groups(), local_rank, backend, group_name="shift_sp")
        return cls(tensor=tensor, sequence=sequence, base_tensor=base)

    def as_tensor_group(self) -> AbstractContextManager[None]:
        """Within, vLLM's tensor-parallel group is the base group of the SP tree."""
        return _tensor_group(self.base_tensor)

    def as_unreduced_tensor_group(self) -> AbstractContextManager[None]:
        """Within, vLLM's tensor-parallel group is the TP tree's again, but leaves each rank its part of a sum."""
        return _tensor_group(_Unreduced(self.tensor))

    def sum_and_scatter(self, partial: torch.Tensor) -> torch.Tensor:
        """Each rank's part of a sum, for all tokens of the SP group, in; the sum of this rank's tokens out."""
        partial = partial.contiguous()
        own = partial.new_empty(partial.shape[0] // self.sequence.world_size, *partial.shape[1:])
        dist.reduce_scatter_tensor(own, partial, group=self.sequence.device_group)
        if self.base_tensor.world_size > 1:
            dist.all_reduce(own, group=self.base_tensor.device_group)
        return own


class _Unreduced:
    """A group whose all-reduce does nothing."""

    def __init__(self, group: GroupCoordinator) -> None:
        self._group = group

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def all_reduce(self, partial: torch.Tensor) -> torch.Tensor:
        """The part as it is."""
        return partial


@contextmanager
def _tensor_group(group: Any) -> Iterator[None]:
    before = parallel_state._TP  # noqa: SLF001 - vLLM offers no public way to build or run a model in another group
    parallel_state._TP = group  # noqa: SLF001
    try:
        yield
    finally:
        parallel_state._TP = before  # noqa: SLF001


class Runtime(Steps):
    """One per worker process: the choice, and what an SP step works with."""

    def __init__(self, plan: RankPlan, groups: Groups, threshold_tokens: int, floor_tokens: int) -> None:
        super().__init__(threshold_tokens, floor_tokens)
        self.plan = plan
        self.groups = groups
        self.transport: Transport = Collective(groups.sequence.device_group)
        """Moves rows within the SP group."""
        self.step_tokens = 0
        """Rows of the present SP step without padding."""
