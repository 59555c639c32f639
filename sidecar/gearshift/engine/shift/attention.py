# SPDX-License-Identifier: Apache-2.0
"""Attention of the SP tree: all-to-all, the TP tree's own attention layer, all-to-all back.

Packing and unpacking are traced with the model, so the compiler fuses them with their neighbours (rotary embedding
before, quantization after). What talks to other ranks or needs the step's real token count is one opaque operator.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from vllm.distributed.parallel_state import GroupCoordinator
from vllm.utils.torch_utils import direct_register_custom_op

from gearshift.engine.shift.exchange import HeadPlan, Method
from gearshift.engine.shift.runtime import Runtime
from gearshift.engine.shift.transport import OUTPUT_SLOT, QUERY_SLOT, Transport

_LAYERS: dict[str, "SequenceAttention"] = {}

REPLICATED_OP = "gearshift_sequence_attention"
GATHERED_OP = "gearshift_sequence_attention_gathered"
SPLITTING_OPS = (f"vllm::{REPLICATED_OP}", f"vllm::{GATHERED_OP}")


def _replicated(packed: torch.Tensor, layer_name: str) -> torch.Tensor:
    return _LAYERS[layer_name].attend_replicated(packed.contiguous())


def _replicated_fake(packed: torch.Tensor, layer_name: str) -> torch.Tensor:
    return packed.new_empty(packed.shape[0], packed.shape[1], _LAYERS[layer_name].heads.output_width)


def _gathered(query: torch.Tensor, key_value: torch.Tensor, layer_name: str) -> torch.Tensor:
    return _LAYERS[layer_name].attend_gathered(query.contiguous(), key_value.contiguous())


def _gathered_fake(query: torch.Tensor, key_value: torch.Tensor, layer_name: str) -> torch.Tensor:
    del key_value
    return query.new_empty(query.shape[0], query.shape[1], _LAYERS[layer_name].heads.output_width)


direct_register_custom_op(op_name=REPLICATED_OP, op_func=_replicated, fake_impl=_replicated_fake)
direct_register_custom_op(op_name=GATHERED_OP, op_func=_gathered, fake_impl=_gathered_fake)


class SequenceAttention(nn.Module):
    """Takes the place of an attention layer in the SP tree.

    Args:
        layer: the attention layer of the TP tree under the same name; it owns KV cache, scales, sinks and window.
        heads: heads of the SP tree's shard and of one rank.
        method: how shared KV heads travel.
        transport: moves rows within the SP group.
        runtime: groups and the present step.
        share_group: ranks that keep the same KV head; needed by method ``gather``.
    """

    def __init__(
        self,
        layer: nn.Module,
        heads: HeadPlan,
        method: Method,
        transport: Transport,
        runtime: Runtime,
        share_group: GroupCoordinator | None,
    ) -> None:
        super().__init__()
        self.layer_name: str = layer.layer_name
        self.heads = heads
        self.method = method
        self._runtime = runtime
        self._transport = transport
        self._share_group = share_group
        self._layer = [layer]  # in a list: the TP tree owns its parameters
        _LAYERS[self.layer_name] = self

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **_: Any) -> torch.Tensor:
        """Rows of this rank's tokens with all heads of the shard in, the same shape out.

        Shapes: query ``[rows, query heads * head size]``, key and value alike; returns
        ``[rows, query heads * value size]``.
        """
        heads, rows = self.heads, query.shape[0]
        query = query.view(rows, heads.ranks, heads.query_width)
        if self.method == "gather":
            returned = torch.ops.vllm.gearshift_sequence_attention_gathered(
                query.transpose(0, 1).contiguous(), self._split_key_value(key, value), self.layer_name
            )
        else:
            parts = (query, self._spread(key, heads.key_width), self._spread(value, heads.value_width))
            packed = torch.cat(parts, dim=-1).transpose(0, 1).contiguous()
            returned = torch.ops.vllm.gearshift_sequence_attention(packed, self.layer_name)
        return returned.transpose(0, 1).reshape(rows, heads.ranks * heads.output_width)

    def _spread(self, tensor: torch.Tensor, width: int) -> torch.Tensor:
        """``[rows, ranks, width]``: for each rank the KV heads that it keeps."""
        heads, rows = self.heads, tensor.shape[0]
        if heads.share == 1:
            return tensor.view(rows, heads.ranks, width)
        shared = tensor.view(rows, heads.key_value, 1, width).expand(rows, heads.key_value, heads.share, width)
        return shared.reshape(rows, heads.ranks, width)

    def _split_key_value(self, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """``[ranks, rows / share, key and value width]``: each KV head once, its tokens over those who share it."""
        heads, rows = self.heads, key.shape[0]
        both = torch.cat(
            (key.view(rows, heads.key_value, heads.key_width), value.view(rows, heads.key_value, heads.value_width)), -1
        )
        split = both.view(heads.share, rows // heads.share, heads.key_value, -1)
        return split.permute(2, 0, 1, 3).reshape(heads.ranks, rows // heads.share, -1)

    def attend_replicated(self, packed: torch.Tensor) -> torch.Tensor:
        """The opaque part: ``[ranks, rows, packed width]`` to ``[ranks, rows, output width]``."""
        heads = self.heads
        received = self._exchange(packed, QUERY_SLOT).view(-1, heads.packed_width)
        query, key, value = received.split([heads.query_width, heads.key_width, heads.value_width], dim=-1)
        output = self._attend(query, key, value).view(heads.ranks, -1, heads.output_width)
        return self._exchange(output, OUTPUT_SLOT)

    def attend_gathered(self, query: torch.Tensor, key_value: torch.Tensor) -> torch.Tensor:
        """The opaque part of method ``gather``."""
        heads = self.heads
        rows = query.shape[1]
        part = self._exchange(key_value, OUTPUT_SLOT)
        query = self._exchange(query, QUERY_SLOT).view(-1, heads.query_width)
        assert self._share_group is not None
        whole = part.new_empty(heads.share * part.shape[0], *part.shape[1:])
        dist.all_gather_into_tensor(whole, part, group=self._share_group.device_group)
        self._runtime.counters.exchanged_bytes += part.nbytes * (heads.share - 1)
        whole = whole.view(heads.share, *part.shape).transpose(0, 1).reshape(heads.ranks * rows, -1)
        key, value = whole.split([heads.key_width, heads.value_width], dim=-1)
        output = self._attend(query, key, value).view(heads.ranks, -1, heads.output_width)
        return self._exchange(output, OUTPUT_SLOT)

    def _exchange(self, rows: torch.Tensor, slot: int) -> torch.Tensor:
        self._runtime.counters.exchanged_bytes += rows.nbytes * (self.heads.ranks - 1) // self.heads.ranks
        return self._transport.exchange(rows, slot)

    def _attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Attention of all tokens with this rank's heads; rows of padding come back as zeros."""
        tokens = self._runtime.step_tokens
        if tokens == query.shape[0]:
            result: torch.Tensor = self._layer[0](query, key, value)
            return result
        output = query.new_zeros(query.shape[0], self.heads.output_width)
        output[:tokens] = self._layer[0](query[:tokens], key[:tokens], value[:tokens])
        return output
