# SPDX-License-Identifier: Apache-2.0
"""How query, key and value heads travel in the all-to-all of one attention layer. Pure arithmetic.

Before attention, a rank holds all heads of the SP tree's shard for its tokens and needs its own heads for all
tokens. With at least as many KV heads as ranks, each head has one destination. With fewer, ``share`` ranks need one
head, and there are two ways (algorithm 1 of arXiv 2509.16495 is the second):

* replicate: the sender puts the head into the row of each of them;
* gather: each head travels once, the tokens split over the ranks that share it, which then all-gather among themselves.
"""

from dataclasses import dataclass
from typing import Literal

Method = Literal["replicate", "gather"]


@dataclass(frozen=True, slots=True)
class HeadPlan:
    """Heads of one attention layer in an SP group of ``ranks``."""

    ranks: int
    query: int  # query heads of the shard, over the whole SP group
    key_value: int  # KV heads of the shard
    head_size: int
    value_size: int

    @property
    def local_query(self) -> int:
        """Query heads that one rank attends with."""
        return self.query // self.ranks

    @property
    def local_key_value(self) -> int:
        """KV heads that one rank keeps in its cache."""
        return max(1, self.key_value // self.ranks)

    @property
    def share(self) -> int:
        """Ranks that keep the same KV head."""
        return max(1, self.ranks // self.key_value)

    @property
    def query_width(self) -> int:
        """Elements of a rank's query row."""
        return self.local_query * self.head_size

    @property
    def key_width(self) -> int:
        """Elements of a rank's key row."""
        return self.local_key_value * self.head_size

    @property
    def value_width(self) -> int:
        """Elements of a rank's value row."""
        return self.local_key_value * self.value_size

    @property
    def packed_width(self) -> int:
        """Elements of a row of the all-to-all when keys and values travel in it as often as they are needed."""
        return self.query_width + self.key_width + self.value_width

    @property
    def output_width(self) -> int:
        """Elements of a rank's attention output row."""
        return self.local_query * self.value_size

    def query_heads(self, position: int) -> range:
        """Query heads of the shard that a rank attends with, by its position in the SP group."""
        return range(position * self.local_query, (position + 1) * self.local_query)

    def key_value_heads(self, position: int) -> range:
        """KV heads of the shard that a rank keeps, by its position in the SP group."""
        begin = position // self.share * self.local_key_value
        return range(begin, begin + self.local_key_value)

    def received_elements(self, method: Method) -> float:
        """Key and value elements per token that a rank receives from other ranks before attention."""
        width = self.key_width + self.value_width
        from_others = (self.ranks - 1) / self.ranks
        if method == "replicate" or self.share == 1:
            return width * from_others
        return width * (from_others / self.share + (self.share - 1) / self.share)

    def cheaper(self) -> Method:
        """The method by which a rank receives fewer bytes; `replicate` on a tie, because it is one collective less.

        Where all ranks reach each other alike that is `replicate`: it moves nothing that its receiver does not keep.
        """
        return "gather" if self.received_elements("gather") < self.received_elements("replicate") else "replicate"

    def gather_groups(self) -> list[list[int]]:
        """Positions in the SP group that share a KV head: contiguous runs of `share`."""
        return [list(range(start, start + self.share)) for start in range(0, self.ranks, self.share)]
