# SPDX-License-Identifier: Apache-2.0
"""The scheduler with the default profile against measured throughput of a burst: 4,096 tokens in and 250 out."""

import pytest

from gearshift.api.vocabulary import Layout
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.capacity import shift_threshold_tokens
from gearshift.perf.profiles import LLAMA_3_70B_FP8_H200 as PROFILE
from gearshift.sim.engine.core import EngineCore
from gearshift.sim.engine.replica import Knobs
from tests.unit.sim.sim_core import Record, request

MEASURED_TOKENS_PER_SECOND = {
    (Layout.TP, 8): 29_022,
    (Layout.SHIFT, 8): 45_915,
    (Layout.DP, 8): 42_649,
    (Layout.TP, 4): 20_209,
    (Layout.SHIFT, 4): 22_190,
    (Layout.DP, 4): 20_807,
}


@pytest.mark.parametrize(("layout", "accelerators"), MEASURED_TOKENS_PER_SECOND)
def test_throughput_of_a_burst_is_near_the_measured_one(layout: Layout, accelerators: int) -> None:
    threshold = shift_threshold_tokens(PROFILE, accelerators, accelerators)
    arrangement = Arrangement(layout, accelerators, accelerators, threshold)
    record = Record()
    core = EngineCore(PROFILE, arrangement, Knobs(8192, 256), record)
    for index in range(48 * accelerators):
        core.submit(request(str(index), prompt=4096, output=250), 0.0)
    core.advance(1000.0)
    seconds = max(each.finished_at or 0.0 for each in record.finished)
    assert len(record.finished) == 48 * accelerators
    expected = MEASURED_TOKENS_PER_SECOND[layout, accelerators]
    assert 48 * accelerators * (4096 + 250) / seconds == pytest.approx(expected, rel=0.12)
