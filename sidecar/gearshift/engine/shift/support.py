# SPDX-License-Identifier: Apache-2.0
"""What the shift engine can't do is refused at start, with the name of the setting, never ignored."""

from typing import Any

from gearshift.engine.shift.settings import ShiftSettingsError

_SPECULATION = ("ngram",)


def require_supported(vllm_config: Any) -> None:
    """Check a ``VllmConfig``.

    Raises:
        ShiftSettingsError: names the setting that the shift engine can't honour.
    """
    parallel, model = vllm_config.parallel_config, vllm_config.model_config
    refused = {
        "pipeline_parallel_size": parallel.pipeline_parallel_size > 1,
        "enable_expert_parallel": parallel.enable_expert_parallel,
        "data_parallel_size": parallel.data_parallel_size > 1,
        "decode_context_parallel_size": parallel.decode_context_parallel_size > 1,
        "enable_lora": vllm_config.lora_config is not None,
        "model: multi-head latent attention (MLA)": model.use_mla,
        "model: multimodal": model.is_multimodal_model,
        "model: encoder-decoder": model.is_encoder_decoder,
    }
    for setting, present in refused.items():
        if present:
            raise ShiftSettingsError(f"{setting} is not supported by layout Shift")
    speculation = vllm_config.speculative_config
    if speculation is not None and speculation.method not in _SPECULATION:
        raise ShiftSettingsError(
            f"speculative_config.method: {speculation.method!r} is not supported by layout Shift; {_SPECULATION} is"
        )


def require_attention_layers(context: dict[str, Any]) -> None:
    """Check the layers that vLLM registered for the forward context: all must be plain decoder attention.

    Raises:
        ShiftSettingsError: names the first layer that is not.
    """
    from vllm.model_executor.layers.attention import Attention  # noqa: PLC0415 - heavy, and only in a worker

    for name, layer in context.items():
        if type(layer) is not Attention:
            raise ShiftSettingsError(f"model: layer {name} is {type(layer).__name__}, which layout Shift can't slice")
