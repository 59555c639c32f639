# SPDX-License-Identifier: Apache-2.0
"""Which ranks form which group, and which heads a rank holds. Pure arithmetic.

Rank ``r = t * SP + s``: SP groups are contiguous, base tensor-parallel groups strided. Rank ``s`` of the SP group of
shard ``t`` then holds head chunk ``t * SP + s = r``, which is vLLM's own order for ``tensor_parallel_size = P``; so the
KV cache of both trees is the same memory.
"""

from dataclasses import dataclass

from gearshift.engine.shift.settings import ShiftSettingsError


@dataclass(frozen=True, slots=True)
class RankPlan:
    """The groups of an engine of ``world`` ranks."""

    world: int
    sequence: int  # SP: ranks of one sequence-parallel group

    @property
    def base_tensor(self) -> int:
        """Tensor-parallel size of the SP tree."""
        return self.world // self.sequence

    def sequence_groups(self) -> list[list[int]]:
        """Contiguous groups of `sequence` ranks."""
        return [[t * self.sequence + s for s in range(self.sequence)] for t in range(self.base_tensor)]

    def base_tensor_groups(self) -> list[list[int]]:
        """Strided groups of `base_tensor` ranks."""
        return [[t * self.sequence + s for t in range(self.base_tensor)] for s in range(self.sequence)]


def plan_ranks(world: int, sequence: int | None, heads: int, kv_heads: int) -> RankPlan:
    """The groups for a model of ``heads`` query heads and ``kv_heads`` key-value heads.

    Raises:
        ShiftSettingsError: the sizes do not divide; the message names them.
    """
    size = sequence or world
    if world < 2:
        raise ShiftSettingsError(
            f"tensor_parallel_size: {world} rank(s) can't be sequence parallel; at least 2 are needed"
        )
    if world % size:
        raise ShiftSettingsError(f"sequence_parallel_size: {size} does not divide tensor_parallel_size {world}")
    if heads % world:
        raise ShiftSettingsError(f"num_attention_heads: {heads} is not divisible by tensor_parallel_size {world}")
    if kv_heads % world and world % kv_heads:
        raise ShiftSettingsError(
            f"num_key_value_heads: {kv_heads} neither divides nor is divided by tensor_parallel_size {world}"
        )
    return RankPlan(world, size)


def tokens_per_rank(tokens: int, sequence: int) -> int:
    """Rows of the slice of one rank, the padding to a multiple of ``sequence`` included."""
    return -(-tokens // sequence)
