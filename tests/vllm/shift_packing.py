# SPDX-License-Identifier: Apache-2.0
"""Runs in the engine environment: the attention of the SP tree on ranks that are threads, against the whole at once.

Prints the cases that differ, one a line, and their number.
"""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import torch

from gearshift.engine.shift.attention import SequenceAttention
from gearshift.engine.shift.exchange import HeadPlan
from gearshift.engine.shift.steps import Counters

HEAD_SIZE = 3


class Meeting:
    """An all-to-all between threads."""

    def __init__(self, ranks: int) -> None:
        self.boxes: list[Any] = [None] * ranks
        self.barrier = threading.Barrier(ranks, timeout=60)


class Seat:
    """One rank's transport."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self._meeting, self._rank = meeting, rank

    def exchange(self, rows: torch.Tensor, _slot: int) -> torch.Tensor:
        """See `gearshift.engine.shift.transport.Transport`; attention asks for nothing else of it."""
        self._meeting.boxes[self._rank] = rows
        self._meeting.barrier.wait()
        received = torch.stack([sent[self._rank] for sent in self._meeting.boxes])
        self._meeting.barrier.wait()
        return received


class Mixing(torch.nn.Module):  # type: ignore[misc]
    """Stands for an attention layer: each query head plus twice its key head plus thrice its value head."""

    def __init__(self, name: str, key_value_heads: int) -> None:
        super().__init__()
        self.layer_name, self._key_value_heads = name, key_value_heads

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """``[tokens, heads * size]`` each."""
        tokens = query.shape[0]
        grouped = query.reshape(tokens, self._key_value_heads, -1, HEAD_SIZE)
        kept = (2 * key + 3 * value).reshape(tokens, self._key_value_heads, 1, HEAD_SIZE)
        return (grouped + kept).reshape(tokens, -1)


def differs(ranks: int, key_value: int, group: int, tokens: int) -> bool:
    """Whether the ranks together answer other than one layer over everything."""
    query_heads = max(ranks, key_value) * group
    heads = HeadPlan(ranks, query_heads, key_value, HEAD_SIZE, HEAD_SIZE)
    rows = -(-tokens // ranks)
    widths = [query_heads * HEAD_SIZE, key_value * HEAD_SIZE, key_value * HEAD_SIZE]
    inputs = [torch.randn(rows * ranks, width) for width in widths]
    meeting = Meeting(ranks)

    def run(rank: int) -> torch.Tensor:
        runtime: Any = SimpleNamespace(counters=Counters(), step_tokens=tokens)
        layer = Mixing(f"{rank}", heads.local_key_value)
        seat: Any = Seat(meeting, rank)
        attention = SequenceAttention(layer, heads, "replicate", seat, runtime, None)
        own: torch.Tensor = attention(*(each[rank * rows : (rank + 1) * rows] for each in inputs))
        return own

    with ThreadPoolExecutor(ranks) as pool:
        found = torch.cat(list(pool.map(run, range(ranks))))
    expected = Mixing("whole", key_value)(*inputs)
    return not torch.allclose(found[:tokens], expected[:tokens]) or bool(found[tokens:].any())


def main() -> None:
    """Try every case."""
    cases = list(itertools.product((2, 4, 8), (1, 2, 4, 8, 16), (1, 2, 3), (1, 7, 16)))
    for case in cases:
        if differs(*case):
            print("differs:", case)
    print("tried", len(cases))


if __name__ == "__main__":
    main()
