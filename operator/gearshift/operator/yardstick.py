# SPDX-License-Identifier: Apache-2.0
"""What one pod of a service can do, from the performance model: by its engine, its model and the GPU of its nodes.

Where nothing was measured the answer says what is not known, and decisions fall back on what pods were seen to carry.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Device, EngineKind, Layout
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.calibration import UnknownCalibrationError
from gearshift.perf.capacity import shift_threshold_tokens
from gearshift.perf.deployment import Deployment
from gearshift.perf.hardware import UnknownGpuError
from gearshift.perf.models import UnknownModelError, find_model
from gearshift.perf.profile import Profile
from gearshift.perf.profiles import DEFAULT_PROFILE, LLAMA_3_70B_FP8_H200, UnknownProfileError, find_profile
from gearshift.perf.yardstick import Throughput, by_measurements, by_profile
from gearshift.policy.rates import EngineRates

GPUS: Final = {"NVIDIA-H100-80GB-HBM3": "h100_sxm", "NVIDIA-H200": "h200_sxm"}
"""GPUs of the performance model by the product that NVIDIA's feature discovery labels nodes with."""
_PROFILED: Final = ("llama-3.1-70b", "h200_sxm", "fp8")
_QUANTIZED: Final = {"fp8": "fp8", "modelopt": "fp8", "compressed-tensors": "fp8", "modelopt_fp4": "nvfp4"}


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Rates of one pod by layout, and where they come from; without rates, what is not known."""

    source: str
    rates: Mapping[Layout, EngineRates] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Question:
    kind: EngineKind
    model: str
    args: tuple[str, ...]
    accelerators: int
    layouts: tuple[Layout, ...]
    sequence_parallel_size: int | None
    threshold: int | None
    gpu: str

    def argument(self, *names: str) -> str | None:
        """Value of an engine argument, as ``--name VALUE`` or ``--name=VALUE``."""
        for index, word in enumerate(self.args):
            name, separator, value = word.partition("=")
            if name in names:
                return value if separator else next(iter(self.args[index + 1 : index + 2]), None)
        return None

    def arrangement(self, profile: Profile, layout: Layout) -> Arrangement:
        """How the accelerators of a pod are arranged."""
        size = self.sequence_parallel_size or self.accelerators
        threshold = self.threshold
        if threshold is None:
            threshold = shift_threshold_tokens(profile, self.accelerators, size) if layout is Layout.SHIFT else 0
        return Arrangement(layout, self.accelerators, size, threshold)


def yardstick(spec: InferenceServiceSpec, products: Iterable[str]) -> Yardstick:
    """Rates of one pod of ``spec``. ``products`` are the GPU products of the nodes that its pods are on."""
    found = sorted({product for product in products if product})
    if spec.engine.kind is EngineKind.VLLM:
        if spec.engine.device is not Device.CUDA:
            return Yardstick(f"unknown: nothing was measured on device {spec.engine.device}")
        if len(found) != 1:
            return Yardstick(f"unknown: the GPU of the nodes is {' and '.join(found) or 'not labelled'}")
    return _answer(
        _Question(
            kind=spec.engine.kind,
            model=spec.model.uri.removeprefix("hf://"),
            args=tuple(spec.engine.args),
            accelerators=spec.pod.accelerators,
            layouts=tuple(spec.parallelism.layouts),
            sequence_parallel_size=spec.parallelism.sequence_parallel_size,
            threshold=spec.parallelism.shift_threshold_tokens,
            gpu=found[0] if found else "",
        )
    )


@lru_cache(maxsize=1024)
def _answer(asked: _Question) -> Yardstick:
    if asked.kind is EngineKind.SIMULATED:
        return _simulated(asked)
    gpu = GPUS.get(asked.gpu)
    if gpu is None:
        return Yardstick(f"unknown: GPU {asked.gpu} was not measured")
    try:
        shape = find_model(asked.model).name
        precision = _precision(asked)
        if (shape, gpu, precision) == _PROFILED:
            return _profiled(asked, LLAMA_3_70B_FP8_H200, 1.0)
        engine = Deployment(
            gpu=gpu, backend="vllm", model=asked.model, tensor_parallel=asked.accelerators, precision=precision
        )
        found = {layout: by_measurements(engine, layout) for layout in asked.layouts}
    except (UnknownGpuError, UnknownModelError, UnknownCalibrationError) as problem:
        return Yardstick(f"unknown: {problem}"[:253])
    rates = {layout: _rates(each, 1.0) for layout, each in found.items() if each is not None}
    if not rates:
        return Yardstick(f"unknown: no layout of {asked.model} on {asked.accelerators} {gpu} was measured")
    return Yardstick(f"measurements of {shape} with vllm on {gpu}", rates)


def _simulated(asked: _Question) -> Yardstick:
    name, speed = asked.argument("--profile") or DEFAULT_PROFILE, asked.argument("--speed") or "1"
    try:
        return _profiled(asked, find_profile(name), float(speed))
    except (UnknownProfileError, ValueError) as problem:
        return Yardstick(f"unknown: {problem}"[:253])


def _profiled(asked: _Question, profile: Profile, speed: float) -> Yardstick:
    rates = {layout: _rates(by_profile(profile, asked.arrangement(profile, layout)), speed) for layout in asked.layouts}
    return Yardstick(f"profile {profile.name}", rates)


def _rates(found: Throughput, speed: float) -> EngineRates:
    return EngineRates(
        found.prefill_tokens_per_second * speed,
        found.step_seconds / speed,
        found.sequence_seconds / speed,
        found.request_seconds / speed,
    )


def _precision(asked: _Question) -> str | None:
    """As the engine was told; else by the model's name; else what the measurements of the model mostly used."""
    told = asked.argument("--quantization", "-q")
    if told is not None:
        return _QUANTIZED.get(told)
    return "fp8" if asked.model.lower().endswith("fp8") else None
