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

QUERY_SLOT, OUTPUT_SLOT, GATHER_SLOT = 0, 1, 2


class Transport(Protocol):
    """Moves rows between the ranks of an SP group."""

    def exchange(self, rows: torch.Tensor, slot: int) -> torch.Tensor:
        """All-to-all: ``[ranks, n, width]`` in, the same shape out, ``[s]`` being what rank ``s`` sent.

        The result is valid until the exchange after the next one of the same slot begins on any rank. Exchanges
        alternate between the slots.
        """

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """All-gather: ``[n, width]`` in, ``[ranks * n, width]`` out, valid until the next gather."""


class Collective:
    """The collectives of the process group."""

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group

    def exchange(self, rows: torch.Tensor, slot: int) -> torch.Tensor:
        """See `Transport`."""
        del slot
        received = torch.empty_like(rows)
        dist.all_to_all_single(received, rows, group=self._group)
        return received

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """See `Transport`."""
        whole = rows.new_empty(dist.get_world_size(self._group) * rows.shape[0], *rows.shape[1:])
        dist.all_gather_into_tensor(whole, rows.contiguous(), group=self._group)
        return whole


class Peer:
    """Direct writes into the receive buffers of the peers (CUDA, one host).

    Why one barrier an exchange is enough: a peer writes slot 0 of the next layer only after it has passed the barrier
    of slot 1 of this one, which this rank enters, in stream order, after it has read slot 0; and the other way round.
    The buffer of `gather` is written once a step, with the barriers of all layers between.
    """

    def __init__(
        self, group: ProcessGroup, slot_bytes: tuple[int, int], gather_bytes: int, device: torch.device
    ) -> None:
        from gearshift.engine.shift.push import push  # noqa: PLC0415 - Triton is where CUDA is

        self._push = push
        self._rank, self._ranks = dist.get_rank(group), dist.get_world_size(group)
        self._buffers = [_Buffer(size, group, device) for size in (*slot_bytes, gather_bytes)]

    def exchange(self, rows: torch.Tensor, slot: int) -> torch.Tensor:
        """See `Transport`."""
        return self._send(rows, slot, rows.shape, same=False)

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """See `Transport`."""
        return self._send(rows, GATHER_SLOT, torch.Size((self._ranks * rows.shape[0], *rows.shape[1:])), same=True)

    def _send(self, rows: torch.Tensor, slot: int, shape: torch.Size, *, same: bool) -> torch.Tensor:
        buffer = self._buffers[slot]
        self._push(rows, buffer.addresses, self._rank, same=same)
        buffer.handle.barrier(channel=slot)
        return buffer.view(shape, rows.dtype)


class _Buffer:
    """A receive buffer that every rank of the group can write to."""

    def __init__(self, size: int, group: ProcessGroup, device: torch.device) -> None:
        import torch.distributed._symmetric_memory as symmetric  # noqa: PLC0415 - only where CUDA is

        self._own = symmetric.empty(size, dtype=torch.uint8, device=device)
        self.handle = symmetric.rendezvous(self._own, group)
        self.addresses = torch.tensor(self.handle.buffer_ptrs, dtype=torch.int64, device=device)

    def view(self, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        """The beginning of this rank's buffer, seen as ``shape``."""
        return self._own[: shape.numel() * dtype.itemsize].view(dtype).view(shape)
