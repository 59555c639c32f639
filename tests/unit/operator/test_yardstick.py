# SPDX-License-Identifier: Apache-2.0
"""Rates of one pod: known where it was measured, and what is not known is said."""

from typing import Any

import pytest

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout
from gearshift.operator.yardstick import yardstick

H200 = ["NVIDIA-H200"]
LLAMA = "hf://meta-llama/Llama-3.1-70B"


def spec(uri: str = LLAMA, layouts: tuple[str, ...] = ("TP", "DP"), **engine: Any) -> InferenceServiceSpec:
    """A service of pods with 8 accelerators."""
    return InferenceServiceSpec.model_validate(
        {"model": {"uri": uri}, "engine": engine, "parallelism": {"layouts": list(layouts)}}
    )


@pytest.mark.parametrize(
    ("service", "products", "source"),
    [
        (spec(), [], "unknown: the GPU of the nodes is not labelled"),
        (spec(), ["NVIDIA-H200", "NVIDIA-L4"], "unknown: the GPU of the nodes is NVIDIA-H200 and NVIDIA-L4"),
        (spec(), ["NVIDIA-L4"], "unknown: GPU NVIDIA-L4 was not measured"),
        (spec("hf://org/own"), H200, "unknown: model 'org/own' is unknown; known: "),
        (spec("pvc://models/llama"), H200, "unknown: model 'pvc://models/llama' is unknown; known: "),
        (spec("hf://Qwen/Qwen3-32B"), H200, "unknown: no measurements of model 'Qwen/Qwen3-32B' with backend 'vllm'"),
        (spec(device="CPU"), H200, "unknown: nothing was measured on device CPU"),
        (spec(layouts=("Shift",)), H200, "unknown: no layout of meta-llama/Llama-3.1-70B on 8 h200_sxm was measured"),
        (spec(kind="Simulated", args=["--profile=none"]), [], "unknown: 'none' is not a profile; known: "),
        (spec(kind="Simulated", args=["--speed", "fast"]), [], "unknown: could not convert string to float: 'fast'"),
    ],
)
def test_what_is_not_known_is_said(service: InferenceServiceSpec, products: list[str], source: str) -> None:
    found = yardstick(service, products)
    assert found.source.startswith(source)
    assert len(found.source) <= 253
    assert not found.rates


def test_a_measured_model_has_rates_in_the_measured_layouts() -> None:
    found = yardstick(spec(layouts=("DP", "TP", "Shift")), H200)
    assert found.source == "measurements of llama-3.1-70b with vllm on h200_sxm"
    assert set(found.rates) == {Layout.TP, Layout.DP}
    tensor, data = found.rates[Layout.TP], found.rates[Layout.DP]
    assert data.prefill_tokens_per_second > tensor.prefill_tokens_per_second
    assert data.step_seconds > tensor.step_seconds


def test_a_profile_knows_every_layout() -> None:
    """The one that was measured step by step is used where model, GPU and precision are its own."""
    found = yardstick(spec(layouts=("DP", "TP", "Shift"), args=["--quantization=fp8"]), H200)
    assert found.source == "profile llama-3-70b-fp8-h200"
    assert set(found.rates) == {Layout.TP, Layout.DP, Layout.SHIFT}


def test_measurements_and_profile_agree_about_the_same_pod() -> None:
    """Two sources of other hands: within a third for prompts and steps."""
    by_hand = yardstick(spec(args=["--quantization", "fp8"]), H200).rates[Layout.TP]
    by_table = yardstick(spec(), H200).rates[Layout.TP]
    assert by_table.prefill_tokens_per_second == pytest.approx(by_hand.prefill_tokens_per_second, rel=0.33)
    assert by_table.step_seconds == pytest.approx(by_hand.step_seconds, rel=0.33)


def test_a_simulated_engine_is_as_fast_as_it_was_told() -> None:
    slow = yardstick(spec(kind="Simulated", args=["--profile", "tiny"]), []).rates[Layout.TP]
    fast = yardstick(spec(kind="Simulated", args=["--profile=tiny", "--speed=10"]), []).rates[Layout.TP]
    assert fast.prefill_tokens_per_second == pytest.approx(10 * slow.prefill_tokens_per_second)
    assert fast.sequence_seconds == pytest.approx(slow.sequence_seconds / 10)
