# SPDX-License-Identifier: Apache-2.0
"""The default profile against what was measured on 4 and 8 accelerators with vLLM 0.26."""

import pytest

from gearshift.api.vocabulary import Layout
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.capacity import itl_seconds, prefill_seconds, shift_threshold_tokens
from gearshift.perf.profiles import LLAMA_3_70B_FP8_H200 as PROFILE
from gearshift.perf.silicon import Measured
from tools.calibrate.bench import benched

# (layout, accelerators): time to first token at 4,096 tokens in ms, its relative error, time per output token in ms
MEASURED = {
    (Layout.TP, 8): (145.6, 0.03, 7.18),
    (Layout.DP, 8): (460.5, 0.03, 20.82),
    (Layout.DP, 4): (469.1, 0.03, 21.01),
    (Layout.SHIFT, 8): (93.8, 0.18, 7.13),  # by a Shift worker that took 11 % longer on 4 than the one of bench/results
}
BENCHED = [(layout, row) for layout in (Layout.TP, Layout.SHIFT) for row in benched(layout)]


def arrangement(layout: Layout, accelerators: int) -> Arrangement:
    threshold = shift_threshold_tokens(PROFILE, accelerators, accelerators)
    return Arrangement(layout, accelerators, accelerators, threshold)


@pytest.mark.parametrize(("layout", "accelerators"), MEASURED)
def test_one_request_takes_as_long_as_measured(layout: Layout, accelerators: int) -> None:
    ttft_ms, error, tpot_ms = MEASURED[layout, accelerators]
    at = arrangement(layout, accelerators)
    assert prefill_seconds(PROFILE, at, 4096) * 1000 == pytest.approx(ttft_ms, rel=error)
    assert itl_seconds(PROFILE, at, sequences=1, context_tokens=4096) * 1000 == pytest.approx(tpot_ms, rel=0.03)


@pytest.mark.parametrize(("layout", "row"), BENCHED, ids=str)
def test_the_benchmarks_of_this_repository_are_met(layout: Layout, row: Measured) -> None:
    at = arrangement(layout, row.deployment.tensor_parallel)
    tokens = row.workload.input_tokens
    assert prefill_seconds(PROFILE, at, tokens) == pytest.approx(row.ttft_seconds, rel=0.07)
    assert itl_seconds(PROFILE, at, sequences=1, context_tokens=tokens) == pytest.approx(row.tpot_seconds, rel=0.03)


def test_shift_gains_what_it_gained_over_tensor_parallelism() -> None:
    for tensor, shift in zip(benched(Layout.TP), benched(Layout.SHIFT), strict=True):
        at = shift.deployment.tensor_parallel
        tokens = shift.workload.input_tokens
        gain = prefill_seconds(PROFILE, arrangement(Layout.SHIFT, at), tokens) / prefill_seconds(
            PROFILE, arrangement(Layout.TP, at), tokens
        )
        assert gain == pytest.approx(shift.ttft_seconds / tensor.ttft_seconds, rel=0.08)
