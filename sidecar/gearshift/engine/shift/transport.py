# SPDX-License-Identifier: Apache-2.0
"""How rows travel between the ranks of an SP group in an all-to-all.

`Collective` is the all-to-all of the group's backend (NCCL, gloo). `Peer` writes each destination's rows straight into
its receive buffer through symmetric memory, then meets the others at one barrier: no staging copy, no kernel of the
collective library, and no processor time per peer beyond one copy.
"""

from typing import Protocol

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup

QUERY_SLOT, OUTPUT_SLOT = 0, 1


class Transport(Protocol):
    """Moves ``rows[d]`` of every rank to rank ``d``."""

    def exchange(self, rows: torch.Tensor, slot: int) -> torch.Tensor:
        """``[ranks, n, width]`` in, the same shape out, ``[s]`` being what rank ``s`` sent.

        The result is valid until the exchange after the next one of the same slot begins on any rank. Exchanges
        alternate between the slots.
        """


class Collective:
    """All-to-all of the process group."""

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group

    def exchange(self, rows: torch.Tensor, slot: int) -> torch.Tensor:
        """See `Transport`."""
        del slot
        received = torch.empty_like(rows)
        dist.all_to_all_single(received, rows, group=self._group)
        return received


class Peer:
    """Direct writes into the receive buffers of the peers (CUDA, one host).

    Why one barrier an exchange is enough: a peer writes slot 0 of the next layer only after it has passed the barrier
    of slot 1 of this one, which this rank enters, in stream order, after it has read slot 0; and the other way round.
    """

    def __init__(self, group: ProcessGroup, slot_bytes: tuple[int, int], device: torch.device) -> None:
        import torch.distributed._symmetric_memory as symmetric  # noqa: PLC0415 - only where CUDA is

        self._rank, self._ranks = dist.get_rank(group), dist.get_world_size(group)
        self._handles, self._own = [], []
        for size in slot_bytes:
            buffer = symmetric.empty(size, dtype=torch.uint8, device=device)
            self._own.append(buffer)
            self._handles.append(symmetric.rendezvous(buffer, group))
        self._peers: dict[tuple[int, torch.Size, torch.dtype], list[torch.Tensor]] = {}

    def exchange(self, rows: torch.Tensor, slot: int) -> torch.Tensor:
        """See `Transport`."""
        views = self._views(slot, rows.shape, rows.dtype)
        for step in range(self._ranks):  # each rank begins with another peer, so that no link is crowded
            destination = (self._rank + step) % self._ranks
            views[destination][self._rank].copy_(rows[destination])
        self._handles[slot].barrier(channel=slot)
        return views[self._rank]

    def _views(self, slot: int, shape: torch.Size, dtype: torch.dtype) -> list[torch.Tensor]:
        """Receive buffer of every rank, seen as ``shape``."""
        key = (slot, shape, dtype)
        if key not in self._peers:
            handle = self._handles[slot]
            if len(self._peers) > 256:
                self._peers.clear()
            self._peers[key] = [handle.get_buffer(rank, shape, dtype) for rank in range(self._ranks)]
        return self._peers[key]
