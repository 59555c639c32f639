# SPDX-License-Identifier: Apache-2.0
"""State of the shift engine in one worker process: groups, the mode of the present step, what was counted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from vllm.distributed import parallel_state
from vllm.distributed.parallel_state import GroupCoordinator

from gearshift.engine.shift.ranks import RankPlan
from gearshift.engine.shift.transport import Collective, Transport


class Mode(StrEnum):
    """Which tree runs a step."""

    TENSOR = "TP"
    SEQUENCE = "SP"


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
        backend = tensor.torch_distributed_backend if hasattr(tensor, "torch_distributed_backend") else None
        if backend is None:
            import torch.distributed as dist  # noqa: PLC0415 - only where the coordinator does not tell its backend

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


@dataclass
class Counters:
    """What happened since start."""

    steps: dict[Mode, int] = field(default_factory=lambda: dict.fromkeys(Mode, 0))
    tokens: dict[Mode, int] = field(default_factory=lambda: dict.fromkeys(Mode, 0))
    exchanged_bytes: int = 0  # sent by this rank to others in all-to-alls and gathers


@dataclass
class Runtime:
    """One per worker process."""

    plan: RankPlan
    groups: Groups
    threshold_tokens: int
    floor_tokens: int  # largest captured graph: steps up to it never reach the wrapper
    mode: Mode = Mode.TENSOR
    forced: Mode | None = None  # for warm-up and measuring
    transport: Transport = field(init=False)  # moves rows within the SP group
    step_tokens: int = 0  # rows of the present SP step without padding
    counters: Counters = field(default_factory=Counters)

    def __post_init__(self) -> None:
        self.transport = Collective(self.groups.sequence.device_group)

    def choose(self, scheduled_tokens: int) -> Mode:
        """Mode of a step; equal on all ranks, because all see the same scheduler output."""
        if self.forced is not None:
            return self.forced
        return Mode.SEQUENCE if scheduled_tokens > self.threshold_tokens else Mode.TENSOR

    @contextmanager
    def step(self, scheduled_tokens: int) -> Iterator[None]:
        """Within, `mode` is that of a step of so many tokens, which is counted."""
        self.mode = self.choose(scheduled_tokens)
        if scheduled_tokens:
            self.counters.steps[self.mode] += 1
            self.counters.tokens[self.mode] += scheduled_tokens
        try:
            yield
        finally:
            self.mode = Mode.TENSOR

    @contextmanager
    def force(self, mode: Mode) -> Iterator[None]:
        """Within, every forward runs in ``mode``."""
        before = (self.forced, self.mode)
        self.forced, self.mode = mode, mode
        try:
            yield
        finally:
            self.forced, self.mode = before

    def set_threshold(self, tokens: int) -> None:
        """Change the threshold.

        Raises:
            ValueError: below the largest captured graph, whose steps would bypass the choice.
        """
        if tokens < self.floor_tokens:
            raise ValueError(
                f"threshold_tokens: {tokens} is below the largest captured graph, {self.floor_tokens} tokens"
            )
        self.threshold_tokens = tokens
