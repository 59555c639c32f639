# SPDX-License-Identifier: Apache-2.0
"""What the shift engine refuses at start, each by the name of its setting."""

from types import SimpleNamespace
from typing import Any

import pytest

from gearshift.engine.shift.settings import ShiftSettingsError
from gearshift.engine.shift.support import require_supported


def config(path: str = "", value: Any = None) -> SimpleNamespace:
    """A configuration that is supported but for the value at a dotted path."""
    made = SimpleNamespace(
        parallel_config=SimpleNamespace(
            pipeline_parallel_size=1,
            enable_expert_parallel=False,
            data_parallel_size=1,
            decode_context_parallel_size=1,
            prefill_context_parallel_size=1,
            enable_dbo=False,
        ),
        model_config=SimpleNamespace(
            use_mla=False,
            is_multimodal_model=False,
            is_encoder_decoder=False,
            is_moe=False,
            is_hybrid=False,
            is_attention_free=False,
            hf_text_config=SimpleNamespace(model_type="dbrx"),
        ),
        lora_config=None,
        speculative_config=None,
    )
    if path:
        part, _, name = path.rpartition(".")
        setattr(getattr(made, part) if part else made, name, value)
    return made


def test_a_plain_decoder_is_supported() -> None:
    require_supported(config())


@pytest.mark.parametrize("model_type", ["mixtral", "qwen3_moe"])
def test_experts_of_these_models_are_supported(model_type: str) -> None:
    made = config("model_config.is_moe", value=True)
    made.model_config.hf_text_config.model_type = model_type
    require_supported(made)


def test_speculation_by_n_grams_is_supported() -> None:
    require_supported(config("speculative_config", SimpleNamespace(method="ngram")))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("parallel_config.pipeline_parallel_size", 2, "pipeline_parallel_size: 2 is not supported by layout Shift"),
        ("parallel_config.enable_expert_parallel", True, "enable_expert_parallel: True is not supported"),
        ("parallel_config.data_parallel_size", 4, "data_parallel_size: 4 is not supported"),
        ("parallel_config.decode_context_parallel_size", 2, "decode_context_parallel_size: 2 is not supported"),
        ("parallel_config.prefill_context_parallel_size", 2, "prefill_context_parallel_size: 2 is not supported"),
        ("parallel_config.enable_dbo", True, "enable_dbo: True is not supported"),
        ("lora_config", object(), "enable_lora is not supported"),
        ("model_config.use_mla", True, "model: multi-head latent attention (MLA) is not supported"),
        ("model_config.is_multimodal_model", True, "model: multimodal is not supported"),
        ("model_config.is_encoder_decoder", True, "model: encoder-decoder is not supported"),
        ("model_config.is_hybrid", True, "model: state-space or linear attention layers is not supported"),
        ("model_config.is_attention_free", True, "model: without attention is not supported"),
        ("model_config.is_moe", True, "model: mixture of experts (dbrx) is not supported by layout Shift"),
        ("speculative_config", SimpleNamespace(method="eagle"), "speculative_config.method: 'eagle' is not supported"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(path: str, value: Any, words: str) -> None:
    with pytest.raises(ShiftSettingsError) as error:
        require_supported(config(path, value))
    assert words in str(error.value)
