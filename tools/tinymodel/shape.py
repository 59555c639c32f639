# SPDX-License-Identifier: Apache-2.0
"""Dimensions of the tiny Llama (or, with experts, Mixtral) and its configuration files."""

from dataclasses import dataclass
from typing import Any, Final

BOS: Final = "<s>"
EOS: Final = "</s>"
PAD: Final = "<pad>"
TURNS: Final = {"system": "<|system|>", "user": "<|user|>", "assistant": "<|assistant|>"}
SPECIAL_TOKENS: Final = [BOS, EOS, PAD, *TURNS.values()]  # in the order of their ids

CHAT_TEMPLATE: Final = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

INITIALIZER_RANGE: Final = 0.12
"""With the usual 0.02 a random model repeats one token whatever its attention does, and tests could not fail."""


@dataclass(frozen=True)
class Shape:
    """What the weights follow from."""

    kv_heads: int = 4
    layers: int = 4
    hidden: int = 256
    heads: int = 8
    head_dim: int = 32  # vLLM's CPU attention wants multiples of 32
    intermediate: int = 512
    vocabulary: int = 1024
    positions: int = 4096
    experts: int = 0  # of a mixture in each layer, two a token; 0: one dense feed-forward

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shape of each weight by its name, in the order in which they are drawn."""
        shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (self.vocabulary, self.hidden)}
        for layer in range(self.layers):
            shapes |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in self._layer().items()}
        return shapes | {"model.norm.weight": (self.hidden,), "lm_head.weight": (self.vocabulary, self.hidden)}

    def _layer(self) -> dict[str, tuple[int, ...]]:
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "input_layernorm": (self.hidden,),
            "self_attn.q_proj": (queries, self.hidden),
            "self_attn.k_proj": (keys, self.hidden),
            "self_attn.v_proj": (keys, self.hidden),
            "self_attn.o_proj": (self.hidden, queries),
            "post_attention_layernorm": (self.hidden,),
            **self._feed_forward(),
        }

    def _feed_forward(self) -> dict[str, tuple[int, ...]]:
        into, out = (self.intermediate, self.hidden), (self.hidden, self.intermediate)
        if not self.experts:
            return {"mlp.gate_proj": into, "mlp.up_proj": into, "mlp.down_proj": out}
        mixture: dict[str, tuple[int, ...]] = {"block_sparse_moe.gate": (self.experts, self.hidden)}
        for expert in range(self.experts):
            prefix = f"block_sparse_moe.experts.{expert}"
            mixture |= {f"{prefix}.w1": into, f"{prefix}.w2": out, f"{prefix}.w3": into}
        return mixture

    def config(self) -> dict[str, Any]:
        """``config.json`` of the Hugging Face format."""
        return {
            **self._kind(),
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "max_position_embeddings": self.positions,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "attention_bias": False,
            "mlp_bias": False,
            "initializer_range": INITIALIZER_RANGE,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            **_ids(),
        }

    def _kind(self) -> dict[str, Any]:
        if not self.experts:
            return {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
        mixture = {"num_local_experts": self.experts, "num_experts_per_tok": 2, "sliding_window": None}
        return {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", **mixture}


def generation_config() -> dict[str, Any]:
    """``generation_config.json``."""
    return _ids()


def tokenizer_config(positions: int) -> dict[str, Any]:
    """``tokenizer_config.json``."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "model_max_length": positions,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }


def _ids() -> dict[str, Any]:
    return {
        f"{word}_token_id": SPECIAL_TOKENS.index(token) for word, token in (("bos", BOS), ("eos", EOS), ("pad", PAD))
    }
