# SPDX-License-Identifier: Apache-2.0
"""The wrapped ``forward`` of the TP tree: in an SP step, slice, run the SP tree, gather."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from gearshift.engine.shift.ranks import tokens_per_rank
from gearshift.engine.shift.runtime import Runtime
from gearshift.engine.shift.steps import Mode


@dataclass(frozen=True, slots=True)
class Slicing:
    """How a step is cut for the SP tree."""

    multiple: int = 1  # rows of a slice are a multiple of it
    embed: Callable[[torch.Tensor], torch.Tensor] | None = None  # where the SP tree has no embedding of its own


def install(model: nn.Module, tree: nn.Module, runtime: Runtime, slicing: Slicing) -> None:
    """Make ``model`` choose between itself and ``tree``."""
    model.forward = _choosing(model.forward, tree, runtime, slicing)


def _choosing(tensor_forward: Callable[..., Any], tree: nn.Module, runtime: Runtime, slicing: Slicing) -> Any:
    def forward(
        input_ids: torch.Tensor | None = None, positions: torch.Tensor | None = None, *rest: Any, **named: Any
    ) -> Any:
        if runtime.mode is Mode.TENSOR or positions is None:
            return tensor_forward(input_ids, positions, *rest, **named)
        return _sequence_forward(tree, runtime, slicing, input_ids, positions, *rest, **named)

    return forward


def _sequence_forward(
    tree: nn.Module,
    runtime: Runtime,
    slicing: Slicing,
    input_ids: torch.Tensor | None,
    positions: torch.Tensor,
    intermediate_tensors: Any = None,
    inputs_embeds: torch.Tensor | None = None,
    **named: Any,
) -> torch.Tensor:
    """``[tokens, hidden]`` on every rank, as the TP tree would return it."""
    group = runtime.groups.sequence
    tokens = positions.shape[-1]
    rows = tokens_per_rank(tokens, group.world_size * slicing.multiple) * slicing.multiple
    begin = group.rank_in_group * rows
    padding = rows * group.world_size - tokens

    def mine(tensor: torch.Tensor | None) -> torch.Tensor | None:
        """This rank's rows of a tensor whose last dimension (or first, if it has a hidden one) is tokens."""
        if tensor is None:
            return None
        return nn.functional.pad(tensor, (0, padding)).narrow(-1, begin, rows).contiguous()

    if slicing.embed is not None and input_ids is not None and inputs_embeds is None:
        input_ids, inputs_embeds = None, slicing.embed(input_ids)
    if inputs_embeds is not None:
        padded = nn.functional.pad(inputs_embeds, (0, 0, 0, padding))
        inputs_embeds = padded.narrow(0, begin, rows).contiguous()
    runtime.step_tokens = tokens
    with runtime.groups.as_tensor_group():
        hidden = tree(
            input_ids=mine(input_ids),
            positions=mine(positions),
            intermediate_tensors=intermediate_tensors,
            inputs_embeds=inputs_embeds,
            **named,
        )
    return runtime.transport.gather(hidden)[:tokens]
