# SPDX-License-Identifier: Apache-2.0
"""Step times of both trees by token count, measured on dummy steps at warm-up."""

import time
from collections.abc import Callable

import torch
from vllm.distributed import parallel_state

from gearshift.engine.shift.calibration import Sample
from gearshift.engine.shift.runtime import Runtime
from gearshift.engine.shift.steps import Mode

REPEATS = 3


def measure(runtime: Runtime, dummy_step: Callable[[int], None], sizes: list[int]) -> list[Sample]:
    """One `Sample` a size, equal on all ranks: the slowest rank's fastest of `REPEATS` steps counts."""
    rows = [[_fastest(runtime, mode, dummy_step, size) for mode in Mode] for size in sizes]
    times = torch.tensor(rows, dtype=torch.float64)
    group = parallel_state.get_tp_group().cpu_group
    torch.distributed.all_reduce(times, op=torch.distributed.ReduceOp.MAX, group=group)
    return [
        Sample(size, tensor_seconds=float(pair[0]), sequence_seconds=float(pair[1]))
        for size, pair in zip(sizes, times, strict=True)
    ]


def _fastest(runtime: Runtime, mode: Mode, dummy_step: Callable[[int], None], size: int) -> float:
    with runtime.force(mode):
        dummy_step(size)
        return min(_timed(dummy_step, size) for _ in range(REPEATS))


def _timed(dummy_step: Callable[[int], None], size: int) -> float:
    _synchronize()
    begin = time.perf_counter()
    dummy_step(size)
    _synchronize()
    return time.perf_counter() - begin


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
