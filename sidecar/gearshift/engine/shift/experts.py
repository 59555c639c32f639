# SPDX-License-Identifier: Apache-2.0
"""Mixture-of-experts layers of the SP tree: it has none of its own, it borrows those of the TP tree.

The experts of the TP tree are split over all ranks, so a rank gathers the tokens of its SP group, computes its part of
every expert for all of them, and the parts are summed and scattered back. Each weight is stored once.
"""

import copy
from typing import Any

import torch
from torch import nn
from vllm.config import ModelConfig
from vllm.utils.torch_utils import direct_register_custom_op

from gearshift.engine.shift.runtime import Runtime
from gearshift.engine.shift.support import EXPERT_COUNTS

_BORROWED: dict[str, "BorrowedExperts"] = {}

EXPERTS_OP = "gearshift_borrowed_experts"


def _experts(rows: torch.Tensor, name: str) -> torch.Tensor:
    return _BORROWED[name].compute(rows.contiguous())


def _experts_fake(rows: torch.Tensor, name: str) -> torch.Tensor:
    del name
    return torch.empty_like(rows)


direct_register_custom_op(op_name=EXPERTS_OP, op_func=_experts, fake_impl=_experts_fake)


class BorrowedExperts(nn.Module):
    """Takes the place of a mixture-of-experts block (router and experts) in the SP tree.

    Args:
        name: of the block, the same in both trees.
        runtime: groups and transport.
    """

    def __init__(self, name: str, runtime: Runtime) -> None:
        super().__init__()
        self.name = name
        self._runtime = runtime
        self._lender: list[nn.Module] = []  # in a list: the TP tree owns its parameters
        _BORROWED[name] = self

    def lend(self, block: nn.Module) -> None:
        """Take the TP tree's block of this name."""
        self._lender = [block]

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Rows ``[rows, hidden]`` of this rank's tokens in, the same shape out."""
        computed: torch.Tensor = torch.ops.vllm.gearshift_borrowed_experts(hidden_states, self.name)
        return computed

    def compute(self, rows: torch.Tensor) -> torch.Tensor:
        """The opaque part."""
        groups, counters = self._runtime.groups, self._runtime.counters
        whole = self._runtime.transport.gather(rows)
        with groups.as_unreduced_tensor_group():
            partial = self._lender[0](whole)
        counters.exchanged_bytes += 2 * rows.nbytes * (groups.sequence.world_size - 1)
        return groups.sum_and_scatter(partial)


def with_few_experts(config: ModelConfig, least: int) -> ModelConfig:
    """The configuration of a model with as few experts as it can have: the SP tree's own ones are never filled.

    ``least``: experts that there must be beside those of one token. Models without experts stay as they are.
    """
    field = EXPERT_COUNTS.get(config.hf_text_config.model_type)
    if field is None:
        return config
    few = copy.copy(config)
    few.hf_config = copy.deepcopy(config.hf_config)
    few.hf_text_config = few.hf_config.get_text_config()
    setattr(few.hf_text_config, field, max(few.hf_text_config.num_experts_per_tok, least))
    return few


def borrow(model: nn.Module, context: dict[str, Any], runtime: Runtime) -> list[BorrowedExperts]:
    """Replace the blocks of ``model`` whose experts are registered in ``context``, before weights are read."""
    names = [name for name, layer in context.items() if type(layer).__name__ in _EXPERT_LAYERS]
    borrowed = []
    for name in names:
        del context[name]
        path = name.rpartition(".")[0]
        parent, _, attribute = path.rpartition(".")
        replacement = BorrowedExperts(path, runtime)
        setattr(model.get_submodule(parent), attribute, replacement)
        borrowed.append(replacement)
    if borrowed:
        _forget_lists(model)
    return borrowed


_EXPERT_LAYERS = ("FusedMoE", "MoERunner")


def _forget_lists(model: nn.Module) -> None:
    """Models keep lists of their expert layers beside the module tree, which would keep those alive."""
    for holder in (model, getattr(model, "model", None)):
        for name, value in list(vars(holder).items()) if holder is not None else ():
            if isinstance(value, list) and any(isinstance(each, nn.Module) for each in value):
                setattr(holder, name, [])
