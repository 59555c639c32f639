# SPDX-License-Identifier: Apache-2.0
"""When requests come and how long they are: phases with a rate and a burstiness, drawn from a seed."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

PREFIX_BLOCK_TOKENS: Final = 512  # tokens that one prefix id stands for
_TOKEN_IDS: Final = range(3, 1000)  # known to every vocabulary, without special tokens


class LoadSpecError(ValueError):
    """A specification that can't be run. The message names the phase, the field and the value."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: ``at_seconds`` after the start, its lengths, and what its prompt is made of."""

    at_seconds: float
    prompt_tokens: int
    output_tokens: int
    prompt_seed: int
    prefix_ids: tuple[int, ...] = ()  # equal ids are equal blocks of PREFIX_BLOCK_TOKENS tokens

    def prompt(self) -> list[int]:
        """Token ids of the prompt."""
        blocks = [token for prefix in self.prefix_ids for token in _block(prefix)][: self.prompt_tokens]
        generator = random.Random(self.prompt_seed)  # noqa: S311
        return blocks + generator.choices(_TOKEN_IDS, k=self.prompt_tokens - len(blocks))


class Phase(BaseModel):
    """A stretch of time with one rate."""

    model_config = ConfigDict(extra="forbid")

    seconds: float = Field(gt=0, le=86_400)
    requests_per_second: float = Field(ge=0, le=10_000)
    burstiness: float = Field(default=1.0, gt=0, le=100)  # variation of the gaps; 1: Poisson, more: bursts
    prompt_tokens: int = Field(default=512, ge=1, le=1 << 20)
    output_tokens: int = Field(default=128, ge=1, le=1 << 20)
    spread: float = Field(default=0.0, ge=0, le=1)  # lengths vary evenly by this share around the given ones


def parse_phases(text: str | bytes) -> list[Phase]:
    """Phases of a JSON list.

    Raises:
        LoadSpecError: a phase is wrong.
    """
    try:
        return TypeAdapter(list[Phase]).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "phases"
        raise LoadSpecError(f"phase {field}: {first['msg']} (value: {first['input']!r:.200})") from None


def draw_arrivals(phases: Sequence[Phase], seed: int, max_requests: int) -> list[Arrival]:
    """Arrivals of all phases, one after the other, at most ``max_requests``; the same for the same seed."""
    return list(islice(_arrivals(phases, random.Random(seed)), max_requests))  # noqa: S311


def _arrivals(phases: Sequence[Phase], generator: random.Random) -> Iterator[Arrival]:
    start = 0.0
    for phase in phases:
        for offset in _offsets(phase, generator):
            yield Arrival(
                start + offset,
                _vary(phase.prompt_tokens, phase.spread, generator),
                _vary(phase.output_tokens, phase.spread, generator),
                generator.getrandbits(63),
            )
        start += phase.seconds


def _offsets(phase: Phase, generator: random.Random) -> Iterator[float]:
    """Arrival times within a phase: gamma gaps whose coefficient of variation is ``sqrt(burstiness)``."""
    if phase.requests_per_second == 0:
        return
    shape = 1 / phase.burstiness
    scale = phase.burstiness / phase.requests_per_second
    offset = generator.gammavariate(shape, scale)
    while offset < phase.seconds:
        yield offset
        offset += generator.gammavariate(shape, scale)


def _vary(tokens: int, spread: float, generator: random.Random) -> int:
    return max(1, round(tokens * generator.uniform(1 - spread, 1 + spread)))


def _block(prefix_id: int) -> list[int]:
    return random.Random(prefix_id).choices(_TOKEN_IDS, k=PREFIX_BLOCK_TOKENS)  # noqa: S311
