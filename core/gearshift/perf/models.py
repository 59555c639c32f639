# SPDX-License-Identifier: Apache-2.0
"""Shapes of models, from their published configurations: what the terms of the performance model are counted in."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


class UnknownModelError(LookupError):
    """No shape of that model. The message lists the known ones."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """One architecture; models that share it share its measurements."""

    name: str
    layers: int
    attention_width: int  # query heads x head size
    kv_width: int  # values that a layer keeps for one token
    parameters: float
    active_parameters: float  # that one token passes through
    max_model_len_tokens: int
    experts: int = 0  # routed experts of a layer; 0: a dense model
    experts_per_token: int = 0

    @property
    def dense_parameters(self) -> float:
        """Parameters that every step reads, whatever its tokens."""
        return self.parameters if not self.experts else _SHARED * self.active_parameters

    def expert_share(self, tokens: float) -> float:
        """Expected share of the experts that ``tokens`` tokens of one step pass through, 0..1."""
        return 1 - (1 - self.experts_per_token / self.experts) ** tokens if self.experts else 0.0


_SHARED: Final = (
    0.4  # of the active parameters of the known mixtures, attention and shared experts are about this share
)

_LLAMA_8B: Final = ModelShape("llama-3.1-8b", 32, 4096, 2048, 8.03e9, 8.03e9, 131_072)
_LLAMA_70B: Final = ModelShape("llama-3.1-70b", 80, 8192, 2048, 70.6e9, 70.6e9, 131_072)
_QWEN_32B: Final = ModelShape("qwen3-32b", 64, 8192, 2048, 32.8e9, 32.8e9, 40_960)
_QWEN_235B: Final = ModelShape("qwen3-235b-a22b", 94, 8192, 1024, 235e9, 22e9, 40_960, 128, 8)
_GPT_OSS: Final = ModelShape("gpt-oss-120b", 36, 4096, 1024, 117e9, 5.1e9, 131_072, 128, 4)
_MINIMAX: Final = ModelShape("minimax-m2.5", 62, 6144, 2048, 230e9, 10e9, 196_608, 256, 8)
_DEEPSEEK: Final = ModelShape("deepseek-v3", 61, 16384, 576, 671e9, 37e9, 163_840, 256, 8)
_KIMI: Final = ModelShape("kimi-k2", 61, 8192, 576, 1026e9, 32e9, 262_144, 384, 8)

_MODELS: Final = MappingProxyType(
    {
        "meta-llama/Llama-3.1-8B-Instruct": _LLAMA_8B,
        "nvidia/Llama-3.1-8B-Instruct-FP8": _LLAMA_8B,
        "meta-llama/Llama-3.1-70B": _LLAMA_70B,
        "Qwen/Qwen3-32B": _QWEN_32B,
        "Qwen/Qwen3-235B-A22B-FP8": _QWEN_235B,
        "openai/gpt-oss-120b": _GPT_OSS,
        "MiniMaxAI/MiniMax-M2.5": _MINIMAX,
        "deepseek-ai/DeepSeek-R1": _DEEPSEEK,
        "deepseek-ai/DeepSeek-V3": _DEEPSEEK,
        "moonshotai/Kimi-K2.5": _KIMI,
    }
)


def model_names() -> list[str]:
    """Names that `find_model` knows, sorted."""
    return sorted(_MODELS)


def find_model(name: str) -> ModelShape:
    """The shape of a model by its name on the hub.

    Raises:
        UnknownModelError: there is none.
    """
    try:
        return _MODELS[name]
    except KeyError:
        raise UnknownModelError(f"model {name!r} is unknown; known: {', '.join(model_names())}") from None
