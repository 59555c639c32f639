# SPDX-License-Identifier: Apache-2.0
"""General plugin of vLLM (entry point ``gearshift`` in ``vllm.general_plugins``), loaded in each of its processes.

It adds methods of new names to EngineCore and to the workers, so that the routes of `gearshift.engine.routes` can
reach the scheduler and the ranks. It is harmless when it runs twice, and cheap to import: vLLM and torch come in
`register` only.
"""

from typing import Any


def register() -> None:
    """Add the utilities to this process's vLLM.

    Raises:
        UnsupportedVersionError: this vLLM is not supported; the engine must not start.
    """
    import vllm  # noqa: PLC0415

    from gearshift.engine.compat import select  # noqa: PLC0415
    from gearshift.engine.core import CoreUtilities  # noqa: PLC0415

    utilities = CoreUtilities(select(vllm.__version__))
    from vllm.v1.engine.core import EngineCore  # noqa: PLC0415
    from vllm.v1.worker.worker_base import WorkerBase  # noqa: PLC0415

    if hasattr(EngineCore, "gearshift_state"):
        return

    def gearshift_state(self: Any, fresh: bool) -> dict[str, Any]:
        return utilities.state(self, fresh=fresh)

    def gearshift_pause(self: Any) -> dict[str, Any]:
        return utilities.pause(self)

    def gearshift_role(self: Any, role: str, epoch: int, knobs: dict[str, Any]) -> dict[str, Any]:
        return utilities.set_role(self, role, epoch, knobs)

    def gearshift_epoch(self: Any, epoch: int) -> dict[str, Any]:
        return utilities.set_epoch(self, epoch)

    def gearshift_layout(self: Any, layout: str, epoch: int, threshold: int | None) -> dict[str, Any]:
        return utilities.set_layout(self, layout, epoch, threshold)

    for function in (gearshift_state, gearshift_pause, gearshift_role, gearshift_epoch, gearshift_layout):
        setattr(EngineCore, function.__name__, function)
    WorkerBase.gearshift_report = rank_report


def rank_report(worker: Any) -> dict[str, Any]:
    """What one rank answers: see `gearshift.engine.shiftview.Answer`."""
    shift = getattr(worker, "gearshift_shift_state", None)
    return {"rank": int(worker.rank), "shift": None if shift is None else shift()}
