# SPDX-License-Identifier: Apache-2.0
"""What differs between GPUs and the CPU, on which a measurement can be tried before it gets GPUs."""

import os
from typing import Any, Final, Literal

Device = Literal["cuda", "cpu"]

CPU_CACHE_GIB: Final = "1"


def engine_arguments(device: Device) -> dict[str, Any]:
    """Engine arguments that a device needs."""
    if device == "cpu":
        return {"dtype": "float32", "enforce_eager": True, "block_size": 32}
    return {"gpu_memory_utilization": 0.9}


def shift_worker(device: Device) -> str:
    """``worker_cls`` of layout Shift."""
    return f"gearshift.engine.shift.{device}.ShiftWorker"


def variables(device: Device, ranks: int) -> dict[str, str]:
    """Environment variables that a device needs: on the CPU each rank has one core, shared where there are fewer."""
    if device != "cpu":
        return {}
    cores = sorted(os.sched_getaffinity(0))
    bind = "|".join(str(cores[rank % len(cores)]) for rank in range(ranks))
    return {"VLLM_CPU_OMP_THREADS_BIND": bind, "VLLM_CPU_KVCACHE_SPACE": CPU_CACHE_GIB}
