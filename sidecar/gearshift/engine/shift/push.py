# SPDX-License-Identifier: Apache-2.0
"""One kernel that writes rows of this rank into the buffers of all ranks of an SP group, over NVLink at once."""

import torch
import triton
import triton.language as tl

BLOCK_WORDS = 4096
PROGRAMS_PER_RANK = 32


@triton.jit
def _push(source, buffers, rank, ranks, words, stride, block: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    # Each rank begins with another peer, so that no link is crowded.
    destination = (rank + tl.program_id(1)) % ranks
    target = tl.load(buffers + destination).to(tl.pointer_type(tl.int32)) + rank * words
    begin = source + destination.to(tl.int64) * stride
    for start in range(tl.program_id(0) * block, words, tl.num_programs(0) * block):
        offsets = start + tl.arange(0, block)
        inside = offsets < words
        tl.store(target + offsets, tl.load(begin + offsets, mask=inside), mask=inside)


def push(rows: torch.Tensor, buffers: torch.Tensor, rank: int, *, same: bool) -> None:
    """Write ``rows`` to place ``rank`` of the buffers.

    Args:
        rows: ``[ranks, ...]``, row ``d`` for rank ``d``; or, with ``same``, one tensor for every rank.
        buffers: int64 ``[ranks]`` on the device: address of each rank's buffer.
        rank: place of this rank in the group.
        same: every rank gets the whole of ``rows``.
    """
    flat = rows.contiguous().view(-1).view(torch.int32)
    ranks = buffers.numel()
    words = flat.numel() if same else flat.numel() // ranks
    grid = (PROGRAMS_PER_RANK, ranks)
    _push[grid](flat, buffers, rank, ranks, words, 0 if same else words, block=BLOCK_WORDS, num_warps=8)
