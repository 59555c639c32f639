# SPDX-License-Identifier: Apache-2.0
"""What the all-to-all of an attention layer carries, against a count of the elements that really move."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearshift.engine.shift.exchange import HeadPlan

Array = np.ndarray[Any, Any]
LLAMA = HeadPlan(ranks=8, query=64, key_value=8, head_size=128, value_size=128)


@st.composite
def plans(draw: st.DrawFn) -> HeadPlan:
    ranks = draw(st.sampled_from([2, 4, 8]))
    key_value = draw(st.sampled_from([1, 2, 4, 8, 16]))
    query = max(ranks, key_value) * draw(st.integers(1, 2))
    return HeadPlan(ranks, query, key_value, head_size=draw(st.sampled_from([2, 3])), value_size=2)


def keys(plan: HeadPlan, rows: int, sender: int) -> Array:
    """Key rows of a sender's tokens, each element telling token and head."""
    token = np.arange(rows).reshape(rows, 1, 1) + sender * rows
    head = np.arange(plan.key_value).reshape(1, plan.key_value, 1)
    return np.broadcast_to(1000 * token + head, (rows, plan.key_value, plan.head_size))


def wanted(plan: HeadPlan, rows: int, position: int) -> Array:
    """Keys of all tokens with the heads of one rank."""
    parts = [keys(plan, rows, sender)[:, plan.key_value_heads(position)] for sender in range(plan.ranks)]
    return np.concatenate(parts).reshape(plan.ranks * rows, plan.key_width)


def all_to_all(sent: list[Array]) -> list[Array]:
    """``received[r][s] = sent[s][r]``."""
    return [np.stack([row[rank] for row in sent]) for rank in range(len(sent))]


@given(plans(), st.integers(1, 3))
def test_replicating_brings_each_rank_its_heads(plan: HeadPlan, rows: int) -> None:
    sent = []
    for sender in range(plan.ranks):
        heads = [keys(plan, rows, sender)[:, plan.key_value_heads(position)] for position in range(plan.ranks)]
        sent.append(np.stack([part.reshape(rows, plan.key_width) for part in heads]))
    for position, received in enumerate(all_to_all(sent)):
        assert (received.reshape(-1, plan.key_width) == wanted(plan, rows, position)).all()


@given(plans(), st.integers(1, 3))
def test_gathering_brings_the_same_and_counts_right(plan: HeadPlan, part: int) -> None:
    rows, kept = part * plan.share, plan.local_key_value
    sent = []
    for sender in range(plan.ranks):
        split = keys(plan, rows, sender).reshape(plan.share, part, plan.key_value, plan.head_size)
        grouped = split.reshape(plan.share, part, plan.ranks // plan.share, kept, plan.head_size)
        sent.append(grouped.transpose(2, 0, 1, 3, 4).reshape(plan.ranks, part, plan.key_width))
    received = all_to_all(sent)
    moved = sum(row[sender].size for row in received for sender in range(plan.ranks - 1))
    for group in plan.gather_groups():
        whole = np.stack([received[position] for position in group])
        moved += (len(group) - 1) * whole.size
        merged = whole.transpose(1, 0, 2, 3).reshape(-1, plan.key_width)
        for position in group:
            assert (merged == wanted(plan, rows, position)).all()
    tokens = rows * plan.ranks * plan.ranks
    value = plan.value_width / plan.key_width
    assert moved / tokens * (1 + value) == pytest.approx(plan.received_elements("gather"))


@given(plans())
def test_widths_add_up_to_all_heads(plan: HeadPlan) -> None:
    assert plan.query_width * plan.ranks == plan.query * plan.head_size
    assert plan.output_width * plan.ranks == plan.query * plan.value_size
    assert plan.key_width * plan.ranks == plan.key_value * plan.share * plan.head_size
    assert plan.packed_width == plan.query_width + plan.key_width + plan.value_width
    assert sorted(position for group in plan.gather_groups() for position in group) == list(range(plan.ranks))


@pytest.mark.parametrize(
    ("plan", "share", "method"),
    [
        (LLAMA, 1, "replicate"),
        (HeadPlan(8, 64, 4, 128, 128), 2, "replicate"),
        (HeadPlan(8, 64, 1, 128, 128), 8, "replicate"),
        (HeadPlan(2, 8, 1, 32, 32), 2, "replicate"),
    ],
)
def test_the_method_that_moves_fewer_bytes_is_chosen(plan: HeadPlan, share: int, method: str) -> None:
    assert (plan.share, plan.cheaper()) == (share, method)
    bytes_by_method = {name: plan.received_elements(name) for name in ("replicate", "gather")}
    assert bytes_by_method[method] == min(bytes_by_method.values())
