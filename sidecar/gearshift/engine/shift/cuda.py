# SPDX-License-Identifier: Apache-2.0
"""``--worker-cls gearshift.engine.shift.cuda.ShiftWorker``."""

from vllm.v1.worker.gpu_worker import Worker

from gearshift.engine.shift.worker import ShiftWorkerMixin


class ShiftWorker(ShiftWorkerMixin, Worker):
    """Shift engine on CUDA."""
