# SPDX-License-Identifier: Apache-2.0
"""State of the shift engine in one worker process: its groups, and the choice of every step."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch.distributed as dist
from vllm.distributed import parallel_state
from vllm.distributed.parallel_state import GroupCoordinator

from gearshift.engine.shift.ranks import RankPlan
from gearshift.engine.shift.steps import Steps
from gearshift.engine.shift.transport import Collective, Transport


@dataclass
class Groups:
    """Process groups of this rank."""

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
        return cls(sequence=sequence, base_tensor=base)

    @contextmanager
    def as_tensor_group(self) -> Iterator[None]:
        """Within, vLLM's tensor-parallel group is the base group of the SP tree."""
        before = parallel_state._TP  # noqa: SLF001 - vLLM offers no public way to build a model in another group
        parallel_state._TP = self.base_tensor  # noqa: SLF001
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
