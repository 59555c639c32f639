# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks and the heads that each of them holds: always those of plain tensor parallelism."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearshift.engine.shift.exchange import HeadPlan
from gearshift.engine.shift.ranks import RankPlan, plan_ranks, tokens_per_rank
from gearshift.engine.shift.settings import ShiftSettingsError

Heads = list[int]
SIZES = st.sampled_from([1, 2, 4, 8])


def shard(heads: int, ranks: int, rank: int) -> Heads:
    """Heads that vLLM gives to a rank: a contiguous share, or one head to several neighbours."""
    if heads >= ranks:
        share = heads // ranks
        return list(range(rank * share, (rank + 1) * share))
    return [rank // (ranks // heads)]


@st.composite
def models(draw: st.DrawFn) -> tuple[RankPlan, int, int]:
    """A plan with the query and KV heads of a model that it can serve."""
    sequence = draw(st.sampled_from([2, 4, 8]))
    world = sequence * draw(st.sampled_from([1, 2, 4]))
    kv_heads = draw(st.sampled_from([1, 2, 4, 8, 16, 32]))
    queries = max(world, kv_heads) * draw(st.integers(1, 3))
    return plan_ranks(world, sequence, queries, kv_heads), queries, kv_heads


def test_groups_of_two_by_two() -> None:
    plan = plan_ranks(4, 2, 8, 4)
    assert (plan.sequence_groups(), plan.base_tensor_groups()) == ([[0, 1], [2, 3]], [[0, 2], [1, 3]])


@given(models())
def test_each_rank_is_in_one_group_of_either_kind(model: tuple[RankPlan, int, int]) -> None:
    plan, _, _ = model
    for groups, size in (
        (plan.sequence_groups(), plan.sequence),
        (plan.base_tensor_groups(), plan.base_tensor),
    ):
        assert sorted(rank for group in groups for rank in group) == list(range(plan.world))
        assert {len(group) for group in groups} == {size}


@given(models())
def test_after_the_exchange_a_rank_has_the_heads_of_plain_tensor_parallelism(model: tuple[RankPlan, int, int]) -> None:
    plan, queries, kv_heads = model
    for shard_index, group in enumerate(plan.sequence_groups()):
        own_queries = shard(queries, plan.base_tensor, shard_index)
        own_kv = shard(kv_heads, plan.base_tensor, shard_index)
        heads = HeadPlan(plan.sequence, len(own_queries), len(own_kv), head_size=1, value_size=1)
        for position, rank in enumerate(group):
            got = [own_queries[head] for head in heads.query_heads(position)]
            assert got == shard(queries, plan.world, rank)
            assert [own_kv[head] for head in heads.key_value_heads(position)] == shard(kv_heads, plan.world, rank)


@given(st.integers(0, 10_000), SIZES)
def test_slices_hold_all_tokens_with_less_than_a_row_a_rank_of_padding(tokens: int, ranks: int) -> None:
    rows = tokens_per_rank(tokens, ranks)
    assert 0 <= rows * ranks - tokens < ranks


@pytest.mark.parametrize(
    ("world", "sequence", "heads", "kv_heads", "words"),
    [
        (1, None, 8, 8, "tensor_parallel_size: 1 rank(s) can't be sequence parallel"),
        (4, 3, 8, 8, "sequence_parallel_size: 3 does not divide tensor_parallel_size 4"),
        (2, 4, 8, 8, "sequence_parallel_size: 4 does not divide tensor_parallel_size 2"),
        (4, 2, 6, 2, "num_attention_heads: 6 is not divisible by tensor_parallel_size 4"),
        (4, 2, 12, 3, "num_key_value_heads: 3 neither divides nor is divided by tensor_parallel_size 4"),
    ],
)
def test_sizes_that_do_not_divide_are_refused(
    world: int, sequence: int | None, heads: int, kv_heads: int, words: str
) -> None:
    with pytest.raises(ShiftSettingsError) as error:
        plan_ranks(world, sequence, heads, kv_heads)
    assert words in str(error.value)
