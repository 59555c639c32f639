# SPDX-License-Identifier: Apache-2.0
"""One state of the engine from the reports of its cores (one core, or one a data-parallel replica)."""

from collections.abc import Sequence
from dataclasses import dataclass

from gearshift.api.engine import EngineState, RoleKnobs
from gearshift.api.vocabulary import Layout, Role
from gearshift.engine import shiftview
from gearshift.engine.core import Report


@dataclass(frozen=True)
class Shape:
    """What the API server knows of its engine from the start."""

    data_parallel_size: int
    world_size: int  # ranks of all cores together
    version: str  # of vLLM
    shift: bool = False  # its workers hold a sequence-parallel tree too: the ranks tell its layout

    @property
    def layout(self) -> Layout:
        """The only layout that an engine without a sequence-parallel tree serves."""
        return Layout.DP if self.data_parallel_size > 1 else Layout.TP


def merge(shape: Shape, reports: Sequence[Report]) -> EngineState:
    """Sum what adds up, take the least of what must hold everywhere."""
    shift = reports[0]["shift"]
    layout = shape.layout if shift is None else Layout(reports[0]["layout"])
    return EngineState(
        layout=layout,
        layouts=[shape.layout] if shift is None else shiftview.served(shift),
        role=Role(reports[0]["role"]),
        epoch=min(report["epoch"] for report in reports),
        paused=all(report["paused"] for report in reports),
        ranks=sum(report["ranks"] for report in reports),
        world_size=shape.world_size,
        knobs=RoleKnobs.model_validate(reports[0]["knobs"]),
        running=sum(report["running"] for report in reports),
        waiting=sum(report["waiting"] for report in reports),
        kv_usage=max(report["kv_usage"] for report in reports),
        shift_threshold_tokens=shift["thresholdTokens"] if layout is Layout.SHIFT else None,
        shift_floor_tokens=None if shift is None else shift["floorTokens"],
        details=_details(shape, reports),
    )


def disagreements(reports: Sequence[Report]) -> list[str]:
    """Names of what the cores should have in common and don't."""
    return [
        name
        for name in ("role", "epoch", "paused", "knobs", "layout")
        if any(report[name] != reports[0][name] for report in reports[1:])
    ]


def _details(shape: Shape, reports: Sequence[Report]) -> dict[str, str]:
    mean = sum(report["kv_usage"] for report in reports) / len(reports)
    details = {"vllm": shape.version, "cores": str(len(reports)), "kvUsageMean": f"{mean:.4f}"}
    details["kvHeld"] = str(sum(report["kv_held"] for report in reports))
    shift = reports[0]["shift"]
    if shift is not None:
        details["sequenceParallelSize"] = str(shift["sequenceParallelSize"])
        details |= {f"steps{layout}": str(count) for layout, count in shift["steps"].items()}
    differing = disagreements(reports)
    if differing:
        details["coresDisagreeOn"] = ", ".join(differing)
    return details
