# SPDX-License-Identifier: Apache-2.0
"""One pass over the checkpoint files feeds both trees."""

import gc
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.config.load import LoadConfig
from vllm.model_executor.model_loader import get_model, register_model_loader
from vllm.model_executor.model_loader.default_loader import DefaultModelLoader
from vllm.model_executor.model_loader.utils import initialize_model, process_weights_after_loading
from vllm.utils.torch_utils import set_default_torch_dtype

from gearshift.engine.shift.settings import ShiftSettingsError
from gearshift.engine.shift.tree import SequenceTree, model_bytes

LOAD_FORMAT = "gearshift_shift"
ONE_PASS_FORMATS = ("auto", "hf", "safetensors", "pt", "npcache", "fastsafetensors", "instanttensor", "mistral")
BATCH_TENSORS = 32  # tensors handed to the SP tree at once: enough to amortize its look-up, few enough to hold

Weight = tuple[str, torch.Tensor]

_job: list["_OnePass"] = []  # the load in progress in this process; vLLM constructs loaders by name


class _OnePass:
    """The SP tree while a load is in progress."""

    def __init__(self, tree: SequenceTree, load_format: str) -> None:
        self.tree = tree
        self.load_format = load_format
        self.model: nn.Module | None = None
        self.loaded: set[str] = set()

    def create(self) -> None:
        config = self.tree.config
        with (
            self.tree.context(),
            set_default_torch_dtype(config.model_config.dtype),
            torch.device(config.device_config.device),
        ):
            self.model = initialize_model(vllm_config=config, model_config=config.model_config)
        self.tree.prepare(self.model)
        gc.collect()  # what was lent goes before the weights come

    def feed(self, batch: list[Weight]) -> None:
        assert self.model is not None
        with self.tree.context():
            self.loaded |= self.model.load_weights([weight for weight in batch if self.tree.reads(weight[0])]) or set()
        batch.clear()

    def finish(self) -> nn.Module:
        assert self.model is not None
        config = self.tree.config
        missing = {name for name, _ in self.model.named_parameters()} - self.loaded
        if self.loaded and missing:
            raise ValueError(f"SP tree: the checkpoint lacks {sorted(missing)[:5]} ({len(missing)} in all)")
        with self.tree.context(), set_default_torch_dtype(config.model_config.dtype):
            process_weights_after_loading(self.model, config.model_config, torch.device(config.device_config.device))
        return self.model.eval()


@register_model_loader(LOAD_FORMAT)
class OnePassLoader(DefaultModelLoader):
    """vLLM's default loader, which shows every tensor that it reads to the SP tree too."""

    def __init__(self, load_config: LoadConfig) -> None:
        self._pass = _job[-1]
        load_config.load_format = self._pass.load_format
        super().__init__(load_config)

    def load_model(self, *args: Any, **named: Any) -> nn.Module:
        """Load the TP tree and, from the same tensors, the SP tree."""
        self._pass.create()
        return super().load_model(*args, **named)

    def get_all_weights(self, *args: Any, **named: Any) -> Generator[Weight, None, None]:
        """The checkpoint's tensors; each has been seen by the SP tree a batch later."""
        batch: list[Weight] = []
        for weight in super().get_all_weights(*args, **named):
            batch.append(weight)
            yield weight
            if len(batch) >= BATCH_TENSORS:
                self._pass.feed(batch)
        self._pass.feed(batch)


@contextmanager
def both_trees(config: VllmConfig, tree: SequenceTree) -> Iterator[None]:
    """Within, vLLM loads its model; on leaving, ``tree`` has its model attached."""
    load_format = str(config.load_config.load_format)
    if load_format not in ONE_PASS_FORMATS:
        if config.model_config.is_moe and load_format != "dummy":
            raise ShiftSettingsError(f"load_format: {load_format} can't load a mixture of experts for layout Shift")
        yield
        with tree.context():
            tree.attach(get_model(vllm_config=tree.config))
        return
    job = _OnePass(tree, load_format)
    _job.append(job)
    config.load_config.load_format = LOAD_FORMAT
    try:
        yield
    finally:
        config.load_config.load_format = load_format
        _job.remove(job)
    assert job.model is not None
    tree.held_bytes = model_bytes(job.model)
    tree.attach(job.finish())
