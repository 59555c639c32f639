# SPDX-License-Identifier: Apache-2.0
"""The wrapped ``forward`` of the TP tree: in an SP step, slice, run the SP tree, gather."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from gearshift.engine.shift.ranks import tokens_per_rank
from gearshift.engine.shift.runtime import Runtime
from gearshift.engine.shift.steps import Mode


def install(model: nn.Module, tree: nn.Module, runtime: Runtime, multiple: int) -> None:
    """Make ``model`` choose between itself and ``tree``. ``multiple``: rows of a slice are a multiple of it."""
    model.forward = _choosing(model.forward, tree, runtime, multiple)


def _choosing(
    tensor_forward: Callable[..., Any], tree: nn.Module, runtime: Runtime, multiple: int
) -> Callable[..., Any]:
    def forward(
        input_ids: torch.Tensor | None = None, positions: torch.Tensor | None = None, *rest: Any, **named: Any
    ) -> Any:
        if runtime.mode is Mode.TENSOR or positions is None:
            return tensor_forward(input_ids, positions, *rest, **named)
        return _sequence_forward(tree, runtime, multiple, input_ids, positions, *rest, **named)

    return forward


def _sequence_forward(
    tree: nn.Module,
    runtime: Runtime,
    multiple: int,
    input_ids: torch.Tensor | None,
    positions: torch.Tensor,
    intermediate_tensors: Any = None,
    inputs_embeds: torch.Tensor | None = None,
    **named: Any,
) -> torch.Tensor:
    """``[tokens, hidden]`` on every rank, as the TP tree would return it."""
    group = runtime.groups.sequence
    tokens = positions.shape[-1]
    rows = tokens_per_rank(tokens, group.world_size * multiple) * multiple
    begin = group.rank_in_group * rows
    padding = rows * group.world_size - tokens

    def mine(tensor: torch.Tensor | None) -> torch.Tensor | None:
        """This rank's rows of a tensor whose last dimension (or first, if it has a hidden one) is tokens."""
        if tensor is None:
            return None
        return nn.functional.pad(tensor, (0, padding)).narrow(-1, begin, rows).contiguous()

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
