# SPDX-License-Identifier: Apache-2.0
"""KV cache blocks of one replica, and the blocks that wait for another engine to read them."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass


class KvPool:
    """A fixed number of blocks; each is free or belongs to one owner."""

    def __init__(self, capacity_blocks: int, block_tokens: int) -> None:
        self.capacity_blocks = capacity_blocks
        self.block_tokens = block_tokens
        self._returned: list[int] = []
        self._never_used = 0  # blocks from here on have had no owner yet

    @property
    def free_blocks(self) -> int:
        """Blocks without an owner."""
        return len(self._returned) + self.capacity_blocks - self._never_used

    @property
    def usage(self) -> float:
        """Owned share of the blocks, 0..1."""
        return 1 - self.free_blocks / self.capacity_blocks if self.capacity_blocks else 0.0

    def blocks_for(self, tokens: int) -> int:
        """Blocks that ``tokens`` tokens need."""
        return -(-tokens // self.block_tokens)

    def take(self, count: int) -> list[int] | None:
        """``count`` block ids, or None (and nothing taken) when fewer are free."""
        if count > self.free_blocks:
            return None
        reused = min(count, len(self._returned))
        taken = [self._returned.pop() for _ in range(reused)]
        fresh = count - reused
        taken.extend(range(self._never_used, self._never_used + fresh))
        self._never_used += fresh
        return taken

    def give_back(self, blocks: list[int]) -> None:
        """Free ``blocks``, which came from `take`."""
        self._returned.extend(blocks)


@dataclass(slots=True)
class Pin:
    """KV of a finished request, kept until another engine has read it or the lease ends."""

    request_id: str
    digest: bytes
    tokens: int
    blocks: list[int]
    expires_at: float  # model seconds


class Pins:
    """Pins of one replica in the order of their expiry (all leases are of one length)."""

    def __init__(self) -> None:
        self._by_request: OrderedDict[str, Pin] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_request)

    def __iter__(self) -> Iterator[Pin]:
        return iter(self._by_request.values())

    def add(self, pin: Pin) -> None:
        """Keep ``pin``."""
        self._by_request[pin.request_id] = pin

    def find(self, request_id: str) -> Pin | None:
        """The pin of a request, if it is still kept."""
        return self._by_request.get(request_id)

    def remove(self, request_id: str) -> Pin | None:
        """Forget and return the pin of a request."""
        return self._by_request.pop(request_id, None)

    def next_expiry(self) -> float | None:
        """When the next pin expires."""
        return next(iter(self._by_request.values())).expires_at if self._by_request else None
