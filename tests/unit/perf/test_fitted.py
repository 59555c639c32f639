# SPDX-License-Identifier: Apache-2.0
"""Profiles fitted to measurements: against the measurements, against the profile made by hand, and their sources."""

from dataclasses import fields
from functools import cache
from statistics import median

import pytest

from gearshift.api.vocabulary import Layout
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.calibration import Calibration, calibrations
from gearshift.perf.capacity import kv_capacity_tokens, prefill_seconds
from gearshift.perf.fitted import profile_name
from gearshift.perf.profile import Profile
from gearshift.perf.profiles import LLAMA_3_70B_FP8_H200, find_profile, profile_names
from gearshift.perf.silicon import Measured
from gearshift.perf.step import StepLoad, step_seconds
from tools.calibrate.rows import Key, by_key, shipped

FITTED = [each for each in calibrations().values() if each.step]


@cache
def groups() -> dict[Key, list[Measured]]:
    return by_key(shipped())


def token_seconds(profile: Profile, row: Measured) -> float:
    """A decode step of all requests, and its share of their prompts."""
    at, load = row.deployment, row.workload
    arrangement = Arrangement(Layout.TP, at.tensor_parallel, at.tensor_parallel)
    length = load.input_tokens + load.output_tokens // 2
    running = max(1, min(load.concurrency, kv_capacity_tokens(profile, arrangement) // length))
    decode = step_seconds(profile, arrangement, StepLoad(decode_sequences=running, kv_tokens=running * length))
    return decode + running / load.output_tokens * prefill_seconds(profile, arrangement, load.input_tokens)


@pytest.mark.parametrize("of", FITTED, ids=profile_name)
def test_tokens_take_as_long_as_measured(of: Calibration) -> None:
    profile = find_profile(profile_name(of))
    rows = groups()[Key(of.gpu, of.backend, of.architecture)]
    used = [row for row in rows if row.deployment.precision == of.precision and row.deployment.attention_ranks == 1]
    wrong = [abs(token_seconds(profile, row) / row.tpot_seconds - 1) for row in used]
    assert median(wrong) <= 0.1


def test_profiles_have_sources_and_come_after_those_made_by_hand() -> None:
    names = profile_names()
    assert names[:2] == ["llama-3-70b-fp8-h200", "tiny"]
    assert names[2:] == sorted(profile_name(of) for of in FITTED)
    numbers = {field.name for field in fields(Profile)} - {"name", "accelerator", "model", "sources"}
    assert all(set(find_profile(name).sources) == numbers for name in names[2:])


def test_the_fit_finds_what_was_measured_by_hand() -> None:
    fitted = find_profile("llama-3.1-70b-fp8-h200-vllm")
    for name in ("step_overhead_seconds", "weight_read_seconds", "token_compute_seconds", "kv_read_seconds"):
        assert getattr(fitted, name) == pytest.approx(getattr(LLAMA_3_70B_FP8_H200, name), rel=0.4)


def test_step_times_are_never_negative_and_memory_is_never_read_faster_than_its_bandwidth() -> None:
    for of in FITTED:
        assert min(of.step) >= 0
        assert of.step[2] >= 1
