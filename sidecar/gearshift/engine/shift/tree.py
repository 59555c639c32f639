# SPDX-License-Identifier: Apache-2.0
"""The SP tree: the same model once more with a smaller tensor-parallel size, its attention replaced."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from vllm.config import CUDAGraphMode, VllmConfig, set_current_vllm_config
from vllm.distributed import parallel_state
from vllm.distributed.parallel_state import GroupCoordinator

from gearshift.engine.shift.attention import SPLITTING_OPS, SequenceAttention
from gearshift.engine.shift.exchange import HeadPlan
from gearshift.engine.shift.experts import EXPERTS_OP, BorrowedExperts, borrow, with_few_experts
from gearshift.engine.shift.runtime import Runtime
from gearshift.engine.shift.settings import ShiftSettings, ShiftSettingsError
from gearshift.engine.shift.support import require_attention_layers
from gearshift.engine.shift.transport import Collective, Peer, Transport

SLACK_TOKENS = 1024  # rows that padding may add to the largest step


def tree_config(config: VllmConfig, base_tensor: int) -> VllmConfig:
    """``config`` for the SP tree: own forward context, base tensor-parallel size, no graphs, our operators split."""
    tree = copy.copy(config)
    tree.compilation_config = compilation = copy.copy(config.compilation_config)
    compilation.static_forward_context = {}
    compilation.static_all_moe_layers = []
    compilation.splitting_ops = [*(compilation.splitting_ops or []), *SPLITTING_OPS, f"vllm::{EXPERTS_OP}"]
    compilation.cudagraph_mode = CUDAGraphMode.NONE
    compilation.traced_files = set()
    compilation.pass_config = copy.copy(compilation.pass_config)
    tree.parallel_config = copy.copy(config.parallel_config)
    tree.parallel_config.tensor_parallel_size = base_tensor
    tree.model_config = with_few_experts(config.model_config, base_tensor)
    return tree


class SequenceTree:
    """Builds the SP tree beside the TP tree and gives the context in which it is built and run."""

    def __init__(self, config: VllmConfig, settings: ShiftSettings, runtime: Runtime) -> None:
        self.config = tree_config(config, runtime.plan.base_tensor)
        self._main = config
        self._settings = settings
        self._runtime = runtime
        self._share_groups: dict[int, GroupCoordinator] = {}
        self._borrowed: list[BorrowedExperts] = []
        self.held_bytes = 0  # what vLLM took for the TP tree's when it measured the memory of its model
        self.model: nn.Module | None = None

    @contextmanager
    def context(self) -> Iterator[None]:
        """Within, vLLM builds and loads modules of the SP tree."""
        with self._runtime.groups.as_tensor_group(), set_current_vllm_config(self.config):
            yield

    def prepare(self, model: nn.Module) -> None:
        """Take what the TP tree will lend out of a model that was just built, so that no memory is kept for it."""
        context = self.config.compilation_config.static_forward_context
        self._borrowed += borrow(model, context, self._runtime)

    def reads(self, weight: str) -> bool:
        """Whether the SP tree has a place for a tensor of the checkpoint."""
        return not weight.startswith(tuple(f"{borrowed.name}." for borrowed in self._borrowed))

    def lend(self, main: nn.Module) -> None:
        """Give the SP tree what it borrows of the TP tree."""
        for borrowed in self._borrowed:
            borrowed.lend(main.get_submodule(borrowed.name))

    def attach(self, model: nn.Module) -> None:
        """Take a loaded model as the SP tree: its attention becomes an exchange around the TP tree's layers.

        Raises:
            ShiftSettingsError: a layer that can't be sliced by heads.
        """
        own, main = self.config.compilation_config.static_forward_context, self._main.compilation_config
        self.prepare(model)
        require_attention_layers(own)
        widest = max(_head_plan(full, self._runtime.plan.sequence).packed_width for full in own.values())
        self._runtime.transport = transport = self._transport(widest)
        for name, full in list(own.items()):
            replacement = self._replacement(main.static_forward_context[name], full, transport)
            parent, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(parent), attribute, replacement)
        own.clear()
        drop_output_head(model)
        if self._settings.share_vocabulary:
            drop_embedding(model)
        self.model = model

    def _transport(self, widest_row: int) -> Transport:
        """The transport of all layers; ``widest_row``: elements of the widest row that travels."""
        device = torch.device(self.config.device_config.device)
        group = self._runtime.groups.sequence.device_group
        chosen = self._settings.transport
        if chosen == "collective" or device.type != "cuda":
            return Collective(group)
        tokens = self.config.scheduler_config.max_num_batched_tokens + SLACK_TOKENS
        size = tokens * widest_row * self.config.model_config.dtype.itemsize
        gathered = tokens * self.config.model_config.get_hidden_size() * self.config.model_config.dtype.itemsize
        return Peer(group, (size, size), gathered, torch.device(device.type, torch.cuda.current_device()))

    def _replacement(self, layer: Any, full: Any, transport: Transport) -> SequenceAttention:
        heads = _head_plan(full, self._runtime.plan.sequence)
        chosen = self._settings.key_value_exchange
        method = heads.cheaper() if chosen == "auto" or heads.share == 1 else chosen
        group = self._share_group(heads) if method == "gather" else None
        return SequenceAttention(layer, heads, method, transport, self._runtime, group)

    def _share_group(self, heads: HeadPlan) -> GroupCoordinator:
        """Group of the ranks that keep the same KV heads; one for all layers of equal sharing."""
        if heads.share not in self._share_groups:
            groups = [
                [group[position] for position in positions]
                for group in self._runtime.plan.sequence_groups()
                for positions in heads.gather_groups()
            ]
            tensor = parallel_state.get_tp_group()
            self._share_groups[heads.share] = parallel_state.init_model_parallel_group(
                groups,
                parallel_state.get_world_group().local_rank,
                torch.distributed.get_backend(tensor.device_group),
                group_name=f"shift_share{heads.share}",
            )
        return self._share_groups[heads.share]

    def bytes(self) -> int:
        """Bytes of the SP tree's own parameters and buffers."""
        assert self.model is not None
        return model_bytes(self.model)


def model_bytes(model: nn.Module) -> int:
    """Bytes of a model's parameters and buffers, shared ones once."""
    tensors = {tensor.data_ptr(): tensor.nbytes for tensor in (*model.parameters(), *model.buffers())}
    return sum(tensors.values())


def _head_plan(full: Any, ranks: int) -> HeadPlan:
    """Heads of an attention layer that the SP tree was built with."""
    return HeadPlan(
        ranks=ranks,
        query=full.num_heads,
        key_value=full.num_kv_heads,
        head_size=full.head_size,
        value_size=getattr(full, "head_size_v", full.head_size),
    )


def drop_output_head(model: nn.Module) -> None:
    """Free the SP tree's output head: logits are always computed by the TP tree."""
    head = getattr(model, "lm_head", None)
    embedding = getattr(getattr(model, "model", None), "embed_tokens", None)
    if isinstance(head, nn.Module) and head is not embedding:
        delattr(model, "lm_head")


def drop_embedding(model: nn.Module) -> None:
    """Free the SP tree's embedding, which the TP tree's stands in for.

    Raises:
        ShiftSettingsError: the model has none where decoders have it.
    """
    inner: Any = getattr(model, "model", None)
    if not isinstance(getattr(inner, "embed_tokens", None), nn.Module):
        raise ShiftSettingsError(f"share_vocabulary: {type(model).__name__} has no model.embed_tokens")
    inner.embed_tokens = None
    if hasattr(model, "lm_head"):  # tied: the same module
        model.lm_head = None
