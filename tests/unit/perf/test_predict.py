# SPDX-License-Identifier: Apache-2.0
"""Predictions of the shipped calibrations: against measurements, in their order, and what is said of the unknown."""

import csv
import gzip
from dataclasses import replace
from importlib.resources import files
from io import StringIO
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearshift.perf.calibration import UnknownCalibrationError, calibrations
from gearshift.perf.deployment import Deployment, Workload, WorkloadError
from gearshift.perf.hardware import UnknownGpuError
from gearshift.perf.models import UnknownModelError, find_model, model_names
from gearshift.perf.predict import predict
from gearshift.perf.silicon import SiliconError, measured
from gearshift.perf.terms import scene, tpot_terms, ttft_terms

LLAMA = Deployment(gpu="h200_sxm", backend="vllm", model="meta-llama/Llama-3.1-70B", tensor_parallel=4)
LOAD = Workload(concurrency=16, input_tokens=1024, output_tokens=1024)
SIZES = st.integers(1, 20_000)


def rows() -> list[dict[str, str]]:
    content = files("gearshift.perf").joinpath("data", "silicon_calibration.csv.gz").read_bytes()
    return list(csv.DictReader(StringIO(gzip.decompress(content).decode())))


def test_what_was_measured_is_predicted() -> None:
    wrong: dict[str, list[float]] = {"ttft": [], "tpot": []}
    for row in map(measured, rows()):
        found = predict(row.deployment, row.workload)
        wrong["ttft"].append(abs(found.ttft_seconds / row.ttft_seconds - 1))
        wrong["tpot"].append(abs(found.tpot_seconds / row.tpot_seconds - 1))
    assert median(wrong["ttft"]) <= 0.05
    assert median(wrong["tpot"]) <= 0.02


def test_a_question_may_leave_out_precision_version_and_expert_sizes() -> None:
    found = predict(LLAMA, LOAD)
    assert found.ttft_seconds == pytest.approx(0.1262, rel=0.1)
    assert found.tpot_seconds == pytest.approx(0.01094, rel=0.1)
    assert found.running == 16


def test_a_full_kv_cache_makes_requests_wait() -> None:
    alone = Deployment(gpu="h200_sxm", backend="vllm", model="meta-llama/Llama-3.1-70B")
    fits, waits = (predict(alone, Workload(concurrency=n, input_tokens=8192, output_tokens=1024)) for n in (16, 128))
    assert waits.running < 128
    assert waits.ttft_seconds > 10 * fits.ttft_seconds


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"gpu": "b300"}, UnknownGpuError, "gpu 'b300' is unknown; known: h100_sxm, h200_sxm"),
        ({"model": "org/new"}, UnknownModelError, "model 'org/new' is unknown; known: MiniMaxAI/MiniMax-M2.5"),
        ({"backend": "sglang"}, UnknownCalibrationError, "no measurements of model 'meta-llama/Llama-3.1-70B' with"),
    ],
)
def test_the_unknown_is_named(changes: dict[str, str], error: type[LookupError], message: str) -> None:
    asked = replace(LLAMA, **changes)  # type: ignore[arg-type]
    with pytest.raises(error) as caught:
        predict(asked, LOAD)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "outside"),
    [
        ({}, ()),
        ({"input_tokens": 100_000}, ("input tokens",)),
        ({"concurrency": 512, "output_tokens": 100}, ("output tokens", "concurrency")),
    ],
)
def test_what_lies_beyond_the_measurements_is_named(changes: dict[str, int], outside: tuple[str, ...]) -> None:
    assert predict(LLAMA, replace(LOAD, **changes)).outside == outside


def test_measurements_do_not_lie_beyond_themselves() -> None:
    assert not any(predict(row.deployment, row.workload).outside for row in map(measured, rows()))


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(WorkloadError, match="concurrency: 0 is below 1"):
        Workload(concurrency=0, input_tokens=1, output_tokens=1)
    with pytest.raises(WorkloadError, match="tensor parallel: -1 is below 1"):
        Deployment(gpu="g", backend="b", model="m", tensor_parallel=-1)
    with pytest.raises(WorkloadError, match="precision 'fp3' is unknown; known: bf16, fp8"):
        Deployment(gpu="g", backend="b", model="m", precision="fp3")


@given(concurrency=SIZES, inputs=SIZES, outputs=SIZES)
def test_terms_are_never_negative(concurrency: int, inputs: int, outputs: int) -> None:
    load = Workload(concurrency=concurrency, input_tokens=inputs, output_tokens=outputs)
    at = scene(LLAMA, load, "fp8")
    assert min(tpot_terms(at) + ttft_terms(at, 0.01)) >= 0


@given(concurrency=st.integers(1, 255), inputs=st.integers(64, 8192))
def test_factors_make_more_load_never_faster_without_neighbours(concurrency: int, inputs: int) -> None:
    loads = [Workload(concurrency=n, input_tokens=inputs, output_tokens=512) for n in (concurrency, concurrency + 1)]
    for each in calibrations().values():
        assert min(each.ttft.factors + each.tpot.factors) >= 0
    first, second = (tpot_terms(scene(LLAMA, load, "fp8")) for load in loads)
    assert all(more >= less for less, more in zip(first, second, strict=True))


@pytest.mark.parametrize("key", calibrations(), ids=" ".join)
def test_a_lone_request_takes_no_less_than_most_of_its_weights_at_peak_bandwidth(key: tuple[str, str, str]) -> None:
    gpu, backend, architecture = key
    model = next(name for name in model_names() if find_model(name).name == architecture)
    deployment = Deployment(gpu=gpu, backend=backend, model=model, tensor_parallel=8)
    load = Workload(concurrency=1, input_tokens=2048, output_tokens=512)
    at = scene(deployment, load, calibrations()[key].precision)
    peak = at.shape.dense_parameters * at.weight_bytes / (8 * at.gpu.memory_bytes_per_second)
    assert predict(deployment, load).tpot_seconds >= 0.5 * peak


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (("64", "1", "8", "8", "4"), (8, 1, 8, 4)),
        (("16", "1", "4", "4", "4"), (4, 1, 4, 4)),
        (("1", "64", "8", "8", "1"), (1, 8, 8, 64)),
        (("4", "4", "1", "16", "2"), (4, 1, 4, 8)),
        (("1", "", "4", "1", "7"), (1, 4, 4, 7)),
        (("1", "8", "1", "8", "32"), (1, 8, 8, 256)),
        (("8", "1", "0", "0", "144"), (8, 1, 8, 144)),
    ],
)
def test_rows_that_multiply_their_sizes_are_read_as_one_host(
    sizes: tuple[str, ...], expected: tuple[int, int, int, int]
) -> None:
    names = ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size", "batch_size")
    found = measured({**rows()[0], **dict(zip(names, sizes, strict=True))})
    at = found.deployment
    assert (at.tensor_parallel, at.data_parallel, at.gpus, found.workload.concurrency) == expected


@pytest.mark.parametrize(
    ("model", "spread"), [("deepseek-ai/DeepSeek-R1", (1, 8)), ("deepseek-ai/DeepSeek-V3", (8, 1))]
)
def test_multiplied_rows_spread_experts_as_the_plain_rows_of_their_model(model: str, spread: tuple[int, int]) -> None:
    sizes = {"tp_size": "64", "attention_dp_size": "1", "moe_tp_size": "8", "moe_ep_size": "8"}
    at = measured({**rows()[0], **sizes, "model_path": model}).deployment
    assert (at.expert_tensor_parallel, at.expert_parallel) == spread


def test_a_missing_column_is_named() -> None:
    row = rows()[0]
    del row["isl"]
    with pytest.raises(SiliconError, match="column 'isl' is missing"):
        measured(row)
