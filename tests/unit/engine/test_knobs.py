# SPDX-License-Identifier: Apache-2.0
"""Settings of a role against those of the start."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearshift.api.engine import RoleKnobs
from gearshift.engine.knobs import KnobRefusedError, Knobs, settle

START = Knobs(max_num_batched_tokens=2048, max_num_seqs=64, long_prefill_token_threshold=0)


def test_what_is_left_open_falls_back_to_the_start() -> None:
    assert settle(RoleKnobs(), START) == START
    wanted = RoleKnobs(max_num_seqs=8)
    assert settle(wanted, START) == Knobs(max_num_batched_tokens=2048, max_num_seqs=8, long_prefill_token_threshold=0)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (RoleKnobs(max_num_batched_tokens=2049), "knobs.maxNumBatchedTokens: 2049 is above 2048"),
        (RoleKnobs(max_num_seqs=65), "knobs.maxNumSeqs: 65 is above 64"),
    ],
)
def test_more_than_the_buffers_hold_is_refused_by_name(wanted: RoleKnobs, text: str) -> None:
    with pytest.raises(KnobRefusedError, match=text):
        settle(wanted, START)


@given(
    tokens=st.integers(1, 2048) | st.none(),
    sequences=st.integers(1, 64) | st.none(),
    threshold=st.integers(0, 10_000) | st.none(),
)
def test_what_is_set_is_what_is_read_back(tokens: int | None, sequences: int | None, threshold: int | None) -> None:
    wanted = RoleKnobs(max_num_batched_tokens=tokens, max_num_seqs=sequences, long_prefill_token_threshold=threshold)
    held = settle(wanted, START).wire().dump()
    assert wanted.dump().items() <= held.items()
    assert held.keys() == START.wire().dump().keys()
