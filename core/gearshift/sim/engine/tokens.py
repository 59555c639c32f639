# SPDX-License-Identifier: Apache-2.0
"""Tokens of the simulated model: a rough tokenizer, and output that depends on the model and the prompt alone.

Whatever pod, layout or split of prefill and decode serves a prompt, it gives the same text; KV of another prompt gives
another.
"""

import re
from array import array
from hashlib import blake2b
from itertools import product
from typing import Final
from zlib import crc32

_PIECE: Final = re.compile(r"\s?\w{1,6}|\s?[^\w\s]|\s+")
_PROMPT_VOCABULARY: Final = 1 << 16
_TOKENS_PER_BLOCK: Final = 32
_SYLLABLES: Final = (
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va",
    "we", "xi", "yo", "zu", "bra", "cle", "dri", "flo", "gru", "pla", "ste", "tri", "sno", "thu", "qua", "she",
)  # fmt: skip
WORDS: Final = tuple(f" {first}{second}" for first, second in product(_SYLLABLES, _SYLLABLES))
MIN_NATURAL_TOKENS: Final = 64
MAX_NATURAL_TOKENS: Final = 512


def encode(text: str) -> list[int]:
    """Token ids of ``text``, about four characters each."""
    return [crc32(piece.encode()) % _PROMPT_VOCABULARY for piece in _PIECE.findall(text)]


def digest_of(model: str, prompt: list[int]) -> bytes:
    """What the output depends on: 16 bytes for a model and the ids of a prompt (each below 2 ** 64)."""
    return blake2b(
        array("Q", prompt).tobytes(), digest_size=16, key=blake2b(model.encode(), digest_size=32).digest()
    ).digest()


def output_ids(digest: bytes, start: int, stop: int) -> list[int]:
    """Token ids at the positions ``start`` to ``stop`` (excluded) of the output; each is an index into `WORDS`."""
    ids: list[int] = []
    first_block = start // _TOKENS_PER_BLOCK
    for block in range(first_block, -(-stop // _TOKENS_PER_BLOCK)):
        raw = array("H", blake2b(digest + block.to_bytes(8), digest_size=64).digest())
        ids.extend(value % len(WORDS) for value in raw)
    offset = first_block * _TOKENS_PER_BLOCK
    return ids[start - offset : stop - offset]


def decode(ids: list[int]) -> str:
    """Text of output token ids."""
    return "".join(WORDS[token] for token in ids)


def natural_tokens(digest: bytes) -> int:
    """Tokens after which the model ends the text by itself."""
    return MIN_NATURAL_TOKENS + int.from_bytes(digest[:4]) % (MAX_NATURAL_TOKENS - MIN_NATURAL_TOKENS)


def find_stop(digest: bytes, stops: list[str], min_tokens: int, max_tokens: int) -> tuple[int, str] | None:
    """Tokens up to the end of the first of ``stops`` in the output, and which one; None when it does not come."""
    text = ""
    longest = max(map(len, stops))
    for position, token in enumerate(output_ids(digest, 0, max_tokens), start=1):
        text = text[-longest:] + WORDS[token]
        found = next((stop for stop in stops if stop in text), None)
        if found is not None and position >= min_tokens:
            return position, found
    return None
