# SPDX-License-Identifier: Apache-2.0
"""The output is a function of model, prompt and position."""

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gearshift.sim.engine.tokens import (
    MAX_NATURAL_TOKENS,
    MIN_NATURAL_TOKENS,
    WORDS,
    decode,
    digest_of,
    encode,
    find_stop,
    natural_tokens,
    output_ids,
)

PROMPTS = st.lists(st.integers(0, (1 << 32) - 1), max_size=50)


@given(prompt=PROMPTS, cuts=st.lists(st.integers(0, 200), max_size=6))
def test_any_cutting_gives_the_same_tokens(prompt: list[int], cuts: list[int]) -> None:
    digest = digest_of("m", prompt)
    borders = [0, *sorted(cuts), 200]
    parts = [output_ids(digest, start, stop) for start, stop in pairwise(borders)]
    assert [token for part in parts for token in part] == output_ids(digest, 0, 200)


@given(one=PROMPTS, other=PROMPTS)
def test_different_prompts_and_models_give_different_tokens(one: list[int], other: list[int]) -> None:
    tokens = output_ids(digest_of("m", one), 0, 16)
    assert output_ids(digest_of("n", one), 0, 16) != tokens
    assert (output_ids(digest_of("m", other), 0, 16) == tokens) == (one == other)


@given(text=st.text(max_size=300))
def test_any_text_can_be_encoded_alike_twice(text: str) -> None:
    assert encode(text) == encode(text)
    assert bool(encode(text)) == bool(text)


def test_english_has_about_four_characters_a_token() -> None:
    text = "The quick brown fox jumps over the lazy dog, and then it rests under an old tree for a while. " * 10
    assert 3 < len(text) / len(encode(text)) < 6


def test_words_need_no_escape_and_are_distinct() -> None:
    assert len(set(WORDS)) == len(WORDS)
    assert all(json.dumps(word) == f'"{word}"' for word in WORDS)


@given(prompt=PROMPTS)
def test_natural_ends_are_bounded(prompt: list[int]) -> None:
    assert MIN_NATURAL_TOKENS <= natural_tokens(digest_of("m", prompt)) < MAX_NATURAL_TOKENS


@given(prompt=PROMPTS, position=st.integers(0, 59), width=st.integers(2, 8))
def test_a_stop_string_is_found_where_the_text_first_has_it(prompt: list[int], position: int, width: int) -> None:
    digest = digest_of("m", prompt)
    text = decode(output_ids(digest, 0, 100))
    stop = text[position : position + width]
    found = find_stop(digest, [stop], 0, 100)
    assert found is not None
    tokens, which = found
    assert which == stop
    assert stop in decode(output_ids(digest, 0, tokens))
    assert stop not in decode(output_ids(digest, 0, tokens - 1))
    assert find_stop(digest, ["QQ"], 0, 100) is None
