# SPDX-License-Identifier: Apache-2.0
"""Draws the weights, trains the tokenizer and writes both in Hugging Face's format, without torch."""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tools.tinymodel.shape import INITIALIZER_RANGE, SPECIAL_TOKENS, Shape, generation_config, tokenizer_config

CORPUS: Final = Path(__file__).parents[2] / "LICENSE"
"""English prose that never changes, so that the tokenizer never does."""


def make(out: Path, shape: Shape, seed: int) -> None:
    """Write the model to the folder ``out``; the same seed and shape give the same bytes.

    Raises:
        ValueError: the shape can't be a Llama, or the corpus is too short for its vocabulary.
    """
    if shape.kv_heads < 1 or shape.heads % shape.kv_heads:
        raise ValueError(f"--kv-heads: {shape.kv_heads} does not divide the {shape.heads} heads")
    out.mkdir(parents=True, exist_ok=True)
    save_file(weights(shape, seed), out / "model.safetensors", metadata={"format": "pt"})
    tokenizer(shape.vocabulary).save(str(out / "tokenizer.json"))
    _write(out / "config.json", shape.config())
    _write(out / "generation_config.json", generation_config())
    _write(out / "tokenizer_config.json", tokenizer_config(shape.positions))
    out.chmod(0o755)
    for path in out.iterdir():
        path.chmod(0o644)  # safetensors writes 0600, which a pod's user could not read


def weights(shape: Shape, seed: int) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Norms are one, everything else is normal."""
    random = np.random.default_rng(seed)
    return {
        name: np.ones(size, np.float32)
        if len(size) == 1
        else random.standard_normal(size, np.float32) * np.float32(INITIALIZER_RANGE)
        for name, size in shape.tensors().items()
    }


def tokenizer(vocabulary: int) -> Tokenizer:
    """A byte-level BPE: any text can be encoded, and any output of the model is text."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(CORPUS.read_text().splitlines(), trainer)
    if made.get_vocab_size() != vocabulary:
        raise ValueError(f"{CORPUS} gives {made.get_vocab_size()} tokens, {vocabulary} are needed")
    return made


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
