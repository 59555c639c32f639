# SPDX-License-Identifier: Apache-2.0
"""What the shift engine can't do is refused at start, with the name of the setting, never ignored."""

from typing import Any

from gearshift.engine.shift.settings import ShiftSettingsError

_SPECULATION = ("ngram",)

EXPERT_COUNTS = {"mixtral": "num_local_experts", "qwen3_moe": "num_experts"}
"""Types of mixture-of-experts models that are served, and the field of their configuration that counts experts."""


def require_supported(vllm_config: Any) -> None:
    """Check a ``VllmConfig``.

    Raises:
        ShiftSettingsError: names the setting that the shift engine can't honour.
    """
    refused = [*_refused_settings(vllm_config), *_refused_models(vllm_config.model_config)]
    if refused:
        raise ShiftSettingsError(f"{refused[0]} is not supported by layout Shift")
    speculation = vllm_config.speculative_config
    if speculation is not None and speculation.method not in _SPECULATION:
        raise ShiftSettingsError(
            f"speculative_config.method: {speculation.method!r} is not supported by layout Shift; {_SPECULATION} is"
        )


def _refused_settings(vllm_config: Any) -> list[str]:
    parallel = vllm_config.parallel_config
    only = {
        "pipeline_parallel_size": 1,
        "enable_expert_parallel": False,
        "data_parallel_size": 1,
        "decode_context_parallel_size": 1,
        "prefill_context_parallel_size": 1,
        "enable_dbo": False,
    }
    found = {name: getattr(parallel, name) for name in only}
    refused = [f"{name}: {value}" for name, value in found.items() if value != only[name]]
    return refused if vllm_config.lora_config is None else [*refused, "enable_lora"]


def _refused_models(model: Any) -> list[str]:
    kind = model.hf_text_config.model_type
    kinds = {
        "multi-head latent attention (MLA)": model.use_mla,
        "multimodal": model.is_multimodal_model,
        "encoder-decoder": model.is_encoder_decoder,
        "state-space or linear attention layers": model.is_hybrid,
        "without attention": model.is_attention_free,
        f"mixture of experts ({kind})": model.is_moe and kind not in EXPERT_COUNTS,
    }
    return [f"model: {name}" for name, found in kinds.items() if found]


def require_attention_layers(context: dict[str, Any]) -> None:
    """Check the layers that vLLM registered for the forward context: all must be plain decoder attention.

    Raises:
        ShiftSettingsError: names the first layer that is not.
    """
    from vllm.model_executor.layers.attention import Attention  # noqa: PLC0415 - heavy, and only in a worker

    for name, layer in context.items():
        if type(layer) is not Attention:
            raise ShiftSettingsError(f"model: layer {name} is {type(layer).__name__}, which layout Shift can't slice")
