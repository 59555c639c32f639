# SPDX-License-Identifier: Apache-2.0
"""What the performance model must know of one accelerator and one model: constants with their source."""

from collections.abc import Mapping
from dataclasses import dataclass

from gearshift.api.vocabulary import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Constants of one (accelerator, model, precision). Times are those of one accelerator unless said otherwise."""

    name: str
    accelerator: str
    model: str
    sources: Mapping[str, str]  # field -> where its number comes from

    accelerator_memory_bytes: float
    memory_utilization: float  # share of the memory that the engine may use, 0..1
    reserved_bytes: float  # activations, graphs and contexts on each accelerator
    weight_bytes: float  # one full copy of the weights
    expert_weight_share: float = 0.0  # of routed experts in the weights; 0: a dense model
    expert_pick_share: float = 0.0  # of the experts that one token passes through
    kv_bytes_per_token: float  # all layers, keys and values
    max_model_len_tokens: int  # longest sequence of the model

    step_overhead_seconds: float  # of every step, in every layout: launch, sampling, small kernels
    eager_overhead_seconds: float  # of a tensor-parallel step of more tokens than graphs are captured for, on top
    sequence_parallel_overhead_seconds: float  # of every sequence-parallel step, on top: no graphs, less to launch
    graph_tokens: int  # most tokens of a step that a captured graph serves
    weight_read_seconds: float  # to read one full copy of the weights
    token_compute_seconds: float  # linear layers of one token when compute is the limit
    context_pair_seconds: float  # prefill attention of one token over one token before it
    kv_read_seconds: float  # decode attention over one token of context
    sequence_seconds: float  # scheduling and sampling of one decoding sequence
    tensor_parallel_seconds: float  # all-reduces of one token, to be multiplied by 2 (p - 1) / p
    sequence_parallel_seconds: float  # all-to-alls of one token, to be multiplied by (p - 1) / p

    startup_seconds: Mapping[Layout, float]  # start of the process to ready, cold caches
    switch_seconds: float  # a resident layout takes over, after the steps in flight
    transfer_bytes_per_second: float  # KV to another pod, of each accelerator
