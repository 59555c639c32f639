# SPDX-License-Identifier: Apache-2.0
"""What the measurement asks of a worker of any layout: ``worker_extension_cls`` of vLLM."""

from typing import Any

from gearshift.engine.shift.tree import model_bytes


class Probe:
    """Mixed into the worker class by vLLM."""

    def bench_weights_bytes(self: Any) -> int:
        """Bytes of the model that vLLM itself has loaded on this rank."""
        return model_bytes(self.model_runner.get_model())
