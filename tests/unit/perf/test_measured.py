# SPDX-License-Identifier: Apache-2.0
"""The default profile against what was measured on 4 and 8 accelerators with vLLM 0.26."""

import pytest

from gearshift.api.vocabulary import Layout
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.capacity import itl_seconds, prefill_seconds, shift_threshold_tokens
from gearshift.perf.profiles import LLAMA_3_70B_FP8_H200 as PROFILE

# (layout, accelerators): time to first token at 4,096 tokens in ms, time per output token in ms
MEASURED = {
    (Layout.TP, 8): (145.6, 7.18),
    (Layout.DP, 8): (460.5, 20.82),
    (Layout.SHIFT, 8): (93.8, 7.13),
    (Layout.TP, 4): (189.0, 9.17),
    (Layout.DP, 4): (469.1, 21.01),
    (Layout.SHIFT, 4): (145.0, 9.21),
}


def arrangement(layout: Layout, accelerators: int) -> Arrangement:
    threshold = shift_threshold_tokens(PROFILE, accelerators, accelerators)
    return Arrangement(layout, accelerators, accelerators, threshold)


@pytest.mark.parametrize(("layout", "accelerators"), MEASURED)
def test_time_to_first_token_is_within_three_percent(layout: Layout, accelerators: int) -> None:
    expected_ms, _ = MEASURED[layout, accelerators]
    actual = prefill_seconds(PROFILE, arrangement(layout, accelerators), 4096)
    assert actual * 1000 == pytest.approx(expected_ms, rel=0.03)


@pytest.mark.parametrize(("layout", "accelerators"), MEASURED)
def test_time_per_output_token_is_within_three_percent(layout: Layout, accelerators: int) -> None:
    _, expected_ms = MEASURED[layout, accelerators]
    actual = itl_seconds(PROFILE, arrangement(layout, accelerators), sequences=1, context_tokens=4096)
    assert actual * 1000 == pytest.approx(expected_ms, rel=0.03)
