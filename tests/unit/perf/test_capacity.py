# SPDX-License-Identifier: Apache-2.0
"""What follows from the step time: capacities, rates, thresholds, and the words for what is not known."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearshift.api.vocabulary import Layout
from gearshift.perf.arrangement import Arrangement, ArrangementError
from gearshift.perf.capacity import (
    itl_line,
    itl_seconds,
    kv_capacity_tokens,
    prefill_seconds,
    prefill_tokens_per_second,
    shift_threshold_tokens,
    startup_seconds,
    transfer_seconds,
)
from gearshift.perf.profiles import LLAMA_3_70B_FP8_H200 as PROFILE
from gearshift.perf.profiles import TINY, UnknownProfileError, find_profile, profile_names
from gearshift.perf.step import StepLoad, prefill_load, step_seconds

LAYOUTS = st.sampled_from(list(Layout))
LOADS = st.builds(
    StepLoad,
    prefill_tokens=st.integers(0, 8192),
    context_pairs=st.integers(0, 10**8),
    decode_sequences=st.integers(0, 256),
    kv_tokens=st.integers(0, 10**6),
)


def test_an_unknown_profile_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownProfileError, match=r"'h300' is not a profile; known: llama-3-70b-fp8-h200, tiny"):
        find_profile("h300")


def test_profiles_are_found_by_their_names() -> None:
    assert [find_profile(name).name for name in profile_names()] == profile_names()


def test_every_number_of_the_default_profile_has_a_source() -> None:
    numbers = {field.name for field in fields(PROFILE)} - {"name", "accelerator", "model", "sources"}
    assert set(PROFILE.sources) == numbers


@pytest.mark.parametrize(
    ("accelerators", "sequence_parallel_size", "threshold", "message"),
    [
        (0, 1, 0, "accelerators: 0 is below 1"),
        (8, 0, 0, "sequence parallel size: 0 is below 1"),
        (8, 3, 0, "sequence parallel size 3 does not divide accelerators 8"),
        (8, 8, -1, "shift threshold tokens: -1 is below 0"),
    ],
)
def test_impossible_arrangements_are_refused(
    accelerators: int, sequence_parallel_size: int, threshold: int, message: str
) -> None:
    with pytest.raises(ArrangementError) as caught:
        Arrangement(Layout.TP, accelerators, sequence_parallel_size, threshold)
    assert str(caught.value) == message


@given(layout=LAYOUTS, load=LOADS, more=LOADS)
def test_more_work_never_takes_less_time_in_one_mode(layout: Layout, load: StepLoad, more: StepLoad) -> None:
    arrangement = Arrangement(layout, 8, 8, shift_threshold_tokens=1 << 20)
    both = StepLoad(*(getattr(load, field.name) + getattr(more, field.name) for field in fields(StepLoad)))
    assert step_seconds(PROFILE, arrangement, both) >= step_seconds(PROFILE, arrangement, load)


@given(tokens=st.integers(1, 16384), accelerators=st.sampled_from([2, 4, 8]))
def test_the_threshold_makes_shift_the_faster_of_both(tokens: int, accelerators: int) -> None:
    threshold = shift_threshold_tokens(PROFILE, accelerators, accelerators)
    shift = Arrangement(Layout.SHIFT, accelerators, accelerators, threshold)
    load = prefill_load(tokens)
    static = [step_seconds(PROFILE, replace(shift, layout=layout), load) for layout in (Layout.TP, Layout.SP)]
    assert step_seconds(PROFILE, shift, load) == min(static)


def test_weights_take_kv_room_by_layout() -> None:
    tokens = {layout: kv_capacity_tokens(PROFILE, Arrangement(layout, 8, 8)) for layout in Layout}
    assert tokens[Layout.TP] > tokens[Layout.SP] > tokens[Layout.SHIFT] > tokens[Layout.DP] > 131_072
    assert kv_capacity_tokens(replace(PROFILE, weight_bytes=2e11), Arrangement(Layout.DP, 8, 8)) == 0


def test_sequence_and_tensor_parallel_mixed_lies_between_both() -> None:
    times = [prefill_seconds(PROFILE, Arrangement(Layout.SP, 8, size), 8192) for size in (8, 4, 2, 1)]
    assert times == sorted(times)


def test_a_long_prompt_costs_more_per_token() -> None:
    arrangement = Arrangement(Layout.TP, 8, 8)
    assert prefill_seconds(PROFILE, arrangement, 65_536) > 8 * prefill_seconds(PROFILE, arrangement, 8_192)
    assert prefill_tokens_per_second(PROFILE, arrangement, 65_536) < prefill_tokens_per_second(
        PROFILE, arrangement, 4096
    )


def test_data_parallel_prefills_most_at_peak() -> None:
    rates = {layout: prefill_tokens_per_second(PROFILE, Arrangement(layout, 8, 8), 4096) for layout in Layout}
    assert rates[Layout.DP] > rates[Layout.SP] > rates[Layout.TP]


@pytest.mark.parametrize("layout", Layout)
def test_the_itl_line_meets_the_model_at_both_ends(layout: Layout) -> None:
    arrangement = Arrangement(layout, 8, 8, 611)
    line = itl_line(PROFILE, arrangement, context_tokens=4096)
    per_replica = kv_capacity_tokens(PROFILE, arrangement) // 4096
    sequences = per_replica * arrangement.replicas
    assert line.at(1.0) == pytest.approx(itl_seconds(PROFILE, arrangement, sequences, 4096))
    assert line.at(1 / per_replica) == pytest.approx(itl_seconds(PROFILE, arrangement, arrangement.replicas, 4096))
    assert line.slope_seconds > 0


def test_start_up_and_transfer_times() -> None:
    assert startup_seconds(PROFILE, Layout.SHIFT) == 221.0
    assert startup_seconds(TINY, Layout.DP) < 1
    assert transfer_seconds(PROFILE, 8, 4096) == pytest.approx(4096 * 327_680 / (8 * 40e9))
