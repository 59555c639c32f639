# SPDX-License-Identifier: Apache-2.0
"""The tiny model's files: complete, reproducible, readable by a pod's user."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from tools.tinymodel.make import make, weights
from tools.tinymodel.shape import BOS, EOS, PAD, SPECIAL_TOKENS, Shape


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    make(folder, Shape(), seed=1)
    return folder


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_the_same_seed_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    make(tmp_path, Shape(), seed=1)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir()
    }


def test_another_seed_gives_other_weights() -> None:
    one, other = weights(Shape(), 1), weights(Shape(), 2)
    assert not np.array_equal(one["lm_head.weight"], other["lm_head.weight"])


def test_everyone_may_read_it(folder: Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
    assert folder.stat().st_mode & 0o777 == 0o755


def test_the_weights_are_those_of_the_configuration(folder: Path) -> None:
    config, tensors = read(folder / "config.json"), load_file(folder / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {np.dtype(np.float32)}
    assert tensors["model.embed_tokens.weight"].shape == (config["vocab_size"], config["hidden_size"])
    keys = (config["num_key_value_heads"] * config["head_dim"], config["hidden_size"])
    assert tensors["model.layers.3.self_attn.k_proj.weight"].shape == keys
    assert len(tensors) == 3 + 9 * config["num_hidden_layers"]
    assert 0.11 < float(tensors["lm_head.weight"].std()) < 0.13
    assert not np.array_equal(tensors["lm_head.weight"], tensors["model.embed_tokens.weight"])


@pytest.mark.parametrize("kv_heads", [1, 8])
def test_the_number_of_kv_heads_is_free(kv_heads: int) -> None:
    shape = Shape(kv_heads=kv_heads)
    assert shape.tensors()["model.layers.0.self_attn.v_proj.weight"] == (32 * kv_heads, 256)
    assert shape.config()["num_key_value_heads"] == kv_heads


@pytest.mark.parametrize("kv_heads", [0, 3, 16])
def test_kv_heads_that_do_not_divide_the_heads_are_refused(kv_heads: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"--kv-heads: {kv_heads} does not divide the 8 heads"):
        make(tmp_path, Shape(kv_heads=kv_heads), seed=1)


def test_each_id_of_the_model_is_text_and_any_text_survives(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == read(folder / "config.json")["vocab_size"]
    text = "Licensed under the Apache License, “x” \N{GRINNING FACE}\n\tλ"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert [tokenizer.id_to_token(index) for index in range(len(SPECIAL_TOKENS))] == SPECIAL_TOKENS


def test_special_tokens_agree_in_all_files(folder: Path) -> None:
    config, generation, tokens = (
        read(folder / name) for name in ("config.json", "generation_config.json", "tokenizer_config.json")
    )
    for word, token in (("bos", BOS), ("eos", EOS), ("pad", PAD)):
        assert config[f"{word}_token_id"] == generation[f"{word}_token_id"] == SPECIAL_TOKENS.index(token)
        assert tokens[f"{word}_token"] == token
    assert "add_generation_prompt" in tokens["chat_template"]
