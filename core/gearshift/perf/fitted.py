# SPDX-License-Identifier: Apache-2.0
"""Profiles from the calibrations: step times of a model on an accelerator with a backend, for simulated engines.

The measurements know tensor parallelism only. What sequence parallelism, start-up and transfers cost comes from the
profile that was measured with them, scaled where it follows from the shape of the model; `Profile.sources` says so.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gearshift.perf.calibration import Calibration, calibrations
from gearshift.perf.deployment import Deployment, Workload
from gearshift.perf.models import ModelShape, find_model, model_names
from gearshift.perf.profile import Profile
from gearshift.perf.stepterms import STEP_TERMS, pair_seconds, units
from gearshift.perf.terms import MEMORY_SHARE, RESERVED_BYTES, Scene, scene

_FIELDS: Final = {
    "step_overhead_seconds": "overhead",
    "weight_read_seconds": "weights",
    "kv_read_seconds": "kv read",
    "sequence_seconds": "sequences",
    "token_compute_seconds": "compute",
    "tensor_parallel_seconds": "all-reduce",
    "eager_overhead_seconds": "launches",
}
"""Field of a profile by the term that it is the factor of."""

_SHEETS: Final = {
    "accelerator_memory_bytes": "data sheet",
    "memory_utilization": "vLLM's default",
    "reserved_bytes": "estimate",
    "weight_bytes": "published configuration of the model and bytes of its precision",
    "expert_weight_share": "published configuration of the model",
    "expert_pick_share": "published configuration of the model",
    "kv_bytes_per_token": "published configuration of the model; 16-bit cache with 16-bit weights, else 8-bit",
    "max_model_len_tokens": "published configuration of the model",
    "context_pair_seconds": "FLOP of the attention at 550 TFLOP/s",
}


_LENT: Final = (
    "graph_tokens", "sequence_parallel_overhead_seconds", "startup_seconds", "switch_seconds",
    "transfer_bytes_per_second",
)  # fmt: skip
_LIKE: Final = find_model("meta-llama/Llama-3.1-70B")
"""The model of the profile that lends."""


def fitted_profiles(like: Profile) -> Mapping[str, Profile]:
    """Profiles by name, such as ``qwen3-32b-bf16-h100-vllm``; ``like`` lends what was not measured here."""
    found = (_profile(each, like) for each in calibrations().values() if each.step)
    return MappingProxyType({profile.name: profile for profile in found})


def profile_name(of: Calibration) -> str:
    """Name of the profile of a calibration."""
    return f"{of.architecture}-{of.precision}-{of.gpu.partition('_')[0]}-{of.backend}"


def _profile(of: Calibration, like: Profile) -> Profile:
    at = _scene(of)
    weights = at.shape.parameters * at.weight_bytes
    return Profile(
        name=profile_name(of),
        accelerator=at.gpu.name,
        model=f"{at.shape.name}, {of.precision} weights, {of.backend}",
        sources=_sources(of, like),
        accelerator_memory_bytes=at.gpu.memory_bytes,
        memory_utilization=MEMORY_SHARE,
        reserved_bytes=RESERVED_BYTES,
        weight_bytes=weights,
        expert_weight_share=1 - at.shape.dense_parameters / at.shape.parameters,
        expert_pick_share=at.shape.expert_share(1),
        kv_bytes_per_token=at.kv_bytes_per_token,
        max_model_len_tokens=at.shape.max_model_len_tokens,
        graph_tokens=like.graph_tokens,
        context_pair_seconds=pair_seconds(at),
        sequence_parallel_overhead_seconds=like.sequence_parallel_overhead_seconds,
        sequence_parallel_seconds=like.sequence_parallel_seconds * _activations(at.shape) / _activations(_LIKE),
        startup_seconds=like.startup_seconds,
        switch_seconds=like.switch_seconds,
        transfer_bytes_per_second=like.transfer_bytes_per_second,
        **_weighed(of, at),
    )


def _sources(of: Calibration, like: Profile) -> Mapping[str, str]:
    fit = f"fitted: {of.rows} measurements of {of.architecture} on {of.gpu} with {of.backend}, data/README.md"
    return MappingProxyType(
        {
            **_SHEETS,
            **dict.fromkeys(_FIELDS, fit),
            **dict.fromkeys(_LENT, f"not measured: that of {like.name}"),
            "sequence_parallel_seconds": f"not measured: that of {like.name} by layers x attention width",
        }
    )


def _weighed(of: Calibration, at: Scene) -> dict[str, float]:
    seconds = dict(zip(STEP_TERMS, (f * unit for f, unit in zip(of.step, units(at), strict=True)), strict=True))
    return {field: seconds[term] for field, term in _FIELDS.items()}


def _scene(of: Calibration) -> Scene:
    """The smallest scene: only what belongs to one accelerator is asked of it."""
    model = next(name for name in model_names() if find_model(name).name == of.architecture)
    deployment = Deployment(gpu=of.gpu, backend=of.backend, model=model)
    return scene(deployment, Workload(concurrency=1, input_tokens=1, output_tokens=1), of.precision)


def _activations(shape: ModelShape) -> int:
    return shape.layers * shape.attention_width
