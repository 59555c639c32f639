# SPDX-License-Identifier: Apache-2.0
"""Which resident engines a pod runs and which of them serves a layout: pure planning over the pod's configuration.

The plan depends on the configuration alone, never on what is live, so a restarted sidecar finds the same processes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gearshift.api.host import ProcessSpec
from gearshift.api.vocabulary import EngineKind, Layout
from gearshift.sidecar.launch import LAUNCHERS, LaunchContext, LaunchError
from gearshift.sidecar.settings import Settings

_SEQUENCE_PARALLEL: Final = frozenset({Layout.SP, Layout.SHIFT})


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """One resident engine."""

    name: str
    port: int
    layouts: tuple[Layout, ...]
    spec: ProcessSpec | None  # None: it cannot be started, see `EngineSet.refusal`


@dataclass(frozen=True, slots=True)
class EngineSet:
    """All resident engines of a pod, in the order in which they are started."""

    plans: tuple[EnginePlan, ...]
    refusal: str = ""  # why this pod can start no engine

    def serving(self, layout: Layout) -> EnginePlan:
        """The engine that serves a layout.

        Raises:
            KeyError: no engine of this pod does.
        """
        for plan in self.plans:
            if layout in plan.layouts:
                return plan
        raise KeyError(f"no engine of this pod serves layout {layout.value}")


def families(kind: EngineKind, layouts: Sequence[Layout], initial: Layout) -> dict[str, tuple[Layout, ...]]:
    """Layout families, the one of the initial layout first: family name -> its layouts.

    The engine that holds a sequence-parallel tree serves TP too.
    """
    grouped: dict[str, list[Layout]] = {}
    with_tree = bool(_SEQUENCE_PARALLEL.intersection(layouts))
    for layout in dict.fromkeys([initial, *layouts]):
        grouped.setdefault(_family(kind, layout, with_tree), []).append(layout)
    return {name: tuple(members) for name, members in grouped.items()}


def plan_engines(settings: Settings, cpus: Sequence[int]) -> EngineSet:
    """The resident engines of this pod; ``cpus`` are the processors that they may use."""
    config = settings.config
    grouped = families(config.engine, config.layouts, config.initial_layout)
    plans: list[EnginePlan] = []
    refusal = ""
    for index, (name, layouts) in enumerate(grouped.items()):
        context = LaunchContext(
            config=config,
            pod_ip=settings.pod.ip,
            port=settings.ports.engine + index,
            index=index,
            residents=len(grouped),
            nixl_port=settings.ports.nixl,
            cpus=tuple(cpus),
        )
        try:
            spec = _spec(name, context)
        except LaunchError as error:
            spec, refusal = None, refusal or str(error)
        plans.append(EnginePlan(name, context.port, layouts, spec))
    return EngineSet(tuple(plans), refusal)


def _spec(family: str, context: LaunchContext) -> ProcessSpec:
    launch = LAUNCHERS[family](context)
    return ProcessSpec(argv=list(launch.argv), env=launch.env)


def _family(kind: EngineKind, layout: Layout, with_tree: bool) -> str:
    if kind is EngineKind.SIMULATED:
        return "sim"
    if layout is Layout.DP:
        return "dp"
    return "shift" if with_tree else "tp"
