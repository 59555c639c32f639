# SPDX-License-Identifier: Apache-2.0
"""Model shapes for measurements with dummy weights: the configuration that vLLM reads, and nothing else."""

import json
from pathlib import Path
from typing import Any

_LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "max_position_embeddings": 131072,
    "vocab_size": 128256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "torch_dtype": "bfloat16",
    "bos_token_id": 128000,
    "eos_token_id": 128001,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "head_dim": 128,
}
_FP8 = {"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}


def _llama(hidden: int, inner: int, layers: int, heads: int, kv_heads: int) -> dict[str, Any]:
    sizes = {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers}
    return _LLAMA | sizes | {"num_attention_heads": heads, "num_key_value_heads": kv_heads}


_QWEN3_32B: dict[str, Any] = _llama(5120, 25600, 64, 64, 8) | {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 151936,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "max_position_embeddings": 40960,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
}

_QWEN3_30B_A3B: dict[str, Any] = (
    _QWEN3_32B
    | _llama(2048, 6144, 48, 32, 4)
    | {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "vocab_size": 151936,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000,
        "max_position_embeddings": 40960,
        "bos_token_id": 151643,
        "eos_token_id": 151645,
    }
)

_MIXTRAL_8X7B: dict[str, Any] = _llama(4096, 14336, 32, 32, 8) | {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "vocab_size": 32000,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "sliding_window": None,
    "rope_theta": 1000000.0,
    "max_position_embeddings": 65536,  # twice the model's own: inputs of 32k and their answers fit
    "bos_token_id": 1,
    "eos_token_id": 2,
}

SHAPES: dict[str, dict[str, Any]] = {
    "llama-70b-fp8": _llama(8192, 28672, 80, 64, 8) | _FP8,
    "llama-8b": _llama(4096, 14336, 32, 32, 8),
    "qwen3-32b": _QWEN3_32B,
    "qwen3-30b-a3b": _QWEN3_30B_A3B,
    "mixtral-8x7b-fp8": _MIXTRAL_8X7B | _FP8,
    "tiny": _llama(256, 512, 4, 8, 4) | {"head_dim": 64, "vocab_size": 1024, "bos_token_id": 0, "eos_token_id": 1},
}


def write(name: str, folder: Path) -> Path:
    """Write the configuration of a shape below ``folder``; returns what to give vLLM as model.

    Raises:
        SystemExit: unknown shape; the message lists the known ones.
    """
    if name not in SHAPES:
        raise SystemExit(f"--shape {name!r} is not one of {', '.join(SHAPES)}")
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    (target / "config.json").write_text(json.dumps(SHAPES[name]))
    return target
