# SPDX-License-Identifier: Apache-2.0
"""``--worker-cls gearshift.engine.shift.cpu.ShiftWorker``."""

from vllm.v1.worker.cpu_worker import CPUWorker

from gearshift.engine.shift.worker import ShiftWorkerMixin


class ShiftWorker(ShiftWorkerMixin, CPUWorker):
    """Shift engine on the CPU, with the same code path as on CUDA."""
