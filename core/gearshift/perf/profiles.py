# SPDX-License-Identifier: Apache-2.0
"""The profiles that come with the product, found by name."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from gearshift.api.vocabulary import Layout
from gearshift.perf.fitted import fitted_profiles
from gearshift.perf.profile import Profile


class UnknownProfileError(LookupError):
    """No profile of that name. The message lists the known ones."""


_LATENCY = (
    "fitted: time to first token and time per output token of one request of 4,096 tokens with vLLM 0.26 "
    "on 4 and on 8 accelerators, tensor and data parallel"
)
_SHIFT = (
    "fitted: time to first token of one request of 4,096 and of 2,048 tokens with layout Shift on 4 accelerators, "
    "bench/results/2026-11-21-shift-4xh200.jsonl"
)
_THROUGHPUT = "fitted: throughput of 48 requests an accelerator, 4,096 tokens in and 250 out, in the same runs"

LLAMA_3_70B_FP8_H200: Final = Profile(
    name="llama-3-70b-fp8-h200",
    accelerator="NVIDIA H200 SXM",
    model="Llama 3 70B, FP8 weights, BF16 KV cache",
    sources=MappingProxyType(
        {
            "accelerator_memory_bytes": "data sheet",
            "memory_utilization": "vLLM's default",
            "reserved_bytes": "estimate",
            "weight_bytes": "70.6e9 parameters of one byte",
            "expert_weight_share": "a dense model",
            "expert_pick_share": "a dense model",
            "kv_bytes_per_token": "80 layers x 8 KV heads x 128 x 2 bytes x keys and values",
            "max_model_len_tokens": "model card",
            "step_overhead_seconds": _LATENCY,
            "eager_overhead_seconds": _THROUGHPUT,
            "sequence_parallel_overhead_seconds": _SHIFT,
            "graph_tokens": "vLLM's default",
            "weight_read_seconds": _LATENCY,
            "token_compute_seconds": _LATENCY,
            "context_pair_seconds": "4 x 80 layers x 8,192 FLOP at 550 TFLOP/s",
            "kv_read_seconds": "kv_bytes_per_token at 70 % of 4.8 TB/s",
            "sequence_seconds": "estimate",
            "tensor_parallel_seconds": _LATENCY,
            "sequence_parallel_seconds": _SHIFT,
            "startup_seconds": "measured on 4 accelerators with cold compile caches; SP assumed as TP",
            "switch_seconds": "measured: resume of a resident engine 2.4 ms, lease of its KV blocks 0.3 ms",
            "transfer_bytes_per_second": "assumed: one 400 Gb/s link an accelerator at 80 %",
        }
    ),
    accelerator_memory_bytes=141e9,
    memory_utilization=0.9,
    reserved_bytes=6e9,
    weight_bytes=70.6e9,
    kv_bytes_per_token=80 * 8 * 128 * 2 * 2,
    max_model_len_tokens=131_072,
    step_overhead_seconds=5.1e-3,
    eager_overhead_seconds=20e-3,
    sequence_parallel_overhead_seconds=4e-3,
    graph_tokens=512,
    weight_read_seconds=15.5e-3,
    token_compute_seconds=97.5e-6,
    context_pair_seconds=4 * 80 * 8192 / 550e12,
    kv_read_seconds=80 * 8 * 128 * 2 * 2 / (0.7 * 4.8e12),
    sequence_seconds=5e-6,
    tensor_parallel_seconds=9.0e-6,
    sequence_parallel_seconds=3.82e-6,
    startup_seconds=MappingProxyType({Layout.TP: 140.0, Layout.DP: 132.0, Layout.SP: 140.0, Layout.SHIFT: 221.0}),
    switch_seconds=2.7e-3,
    transfer_bytes_per_second=40e9,
)

TINY: Final = Profile(
    name="tiny",
    accelerator="none",
    model="a model of a few million parameters",
    sources=MappingProxyType({"*": "invented for tests: steps of about 2 ms, 66 k tokens of KV an accelerator"}),
    accelerator_memory_bytes=1.1e9,
    memory_utilization=1.0,
    reserved_bytes=0.0,
    weight_bytes=7e6,
    kv_bytes_per_token=16_384,
    max_model_len_tokens=32_768,
    step_overhead_seconds=1.5e-3,
    eager_overhead_seconds=1e-3,
    sequence_parallel_overhead_seconds=1e-3,
    graph_tokens=512,
    weight_read_seconds=0.5e-3,
    token_compute_seconds=4e-6,
    context_pair_seconds=1e-11,
    kv_read_seconds=1e-9,
    sequence_seconds=2e-6,
    tensor_parallel_seconds=0.5e-6,
    sequence_parallel_seconds=0.3e-6,
    startup_seconds=MappingProxyType(dict.fromkeys(Layout, 0.05)),
    switch_seconds=2e-3,
    transfer_bytes_per_second=1e9,
)

DEFAULT_PROFILE: Final = LLAMA_3_70B_FP8_H200.name
_BUILT_IN: Final = {profile.name: profile for profile in (LLAMA_3_70B_FP8_H200, TINY)}


@cache
def _profiles() -> Mapping[str, Profile]:
    return _BUILT_IN | dict(fitted_profiles(LLAMA_3_70B_FP8_H200))


def profile_names() -> list[str]:
    """Names that `find_profile` knows: those of this module, then those fitted to measurements, each sorted."""
    return sorted(_BUILT_IN) + sorted(set(_profiles()) - set(_BUILT_IN))


def find_profile(name: str) -> Profile:
    """The profile called ``name``.

    Raises:
        UnknownProfileError: there is none.
    """
    try:
        return _profiles()[name]
    except KeyError:
        raise UnknownProfileError(f"{name!r} is not a profile; known: {', '.join(profile_names())}") from None
