# SPDX-License-Identifier: Apache-2.0
"""Days that are recorded: a service that scales, one that changes layout, one with split roles that flips, and one
whose roles are split or Unified as the load is.
"""

import math
from typing import Any, Final

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.perf.profiles import LLAMA_3_70B_FP8_H200
from gearshift.policy.snapshot import Snapshot
from gearshift.sim.fleet.controllers import Ours
from gearshift.sim.fleet.settings import FleetSettings
from gearshift.sim.fleet.world import World
from gearshift.sim.load.arrivals import Arrival, Phase, draw_arrivals

HOUR_SECONDS: Final = 3600.0
TICK_SECONDS: Final = 30.0
SETTINGS: Final = FleetSettings(
    profile=LLAMA_3_70B_FP8_H200, tick_seconds=TICK_SECONDS, busy_tick_seconds=TICK_SECONDS, scrape_seconds=10.0
)
_BASE: Final[dict[str, Any]] = {
    "model": {"uri": "hf://org/model"},
    "engine": {"kind": "Simulated"},
    "policy": {"window": "60s"},
}
SPECS: Final[dict[str, dict[str, Any]]] = {
    "scaling": {
        "pod": {"accelerators": 4},
        "roles": [{"name": "Unified", "replicas": 2, "min": 1, "max": 5}],
    },
    "shifting": {
        "pod": {"accelerators": 2},
        "parallelism": {"layouts": ["TP", "DP"]},
        "roles": [{"name": "Unified", "replicas": 1}],
    },
    "flipping": {
        "pod": {"accelerators": 2},
        "roles": [{"name": "Prefill", "replicas": 2, "min": 1}, {"name": "Decode", "replicas": 2, "min": 1}],
    },
    "unifying": {
        "pod": {"accelerators": 2},
        "roles": [
            {"name": "Prefill", "replicas": 2, "min": 0},
            {"name": "Decode", "replicas": 2, "min": 0},
            {"name": "Unified", "replicas": 0},
        ],
        "policy": {"window": "60s", "objectives": {"itl": "40ms"}},
    },
}


def snapshots(name: str) -> list[Snapshot]:
    """What the operator sees on that day, tick by tick."""
    controller = Ours(recording=True)
    spec = InferenceServiceSpec.model_validate({**_BASE, **SPECS[name]})
    World(spec, SETTINGS, controller, day()).run()
    return [snapshot for snapshot, _ in controller.snapshots]


def day() -> list[Arrival]:
    """Load that rises to noon and falls again, each hour with one burst; mornings read much, evenings write much."""
    phases = []
    for hour in range(24):
        rate = 0.3 + 3.7 * max(0.0, math.sin(math.pi * (hour - 5) / 15))
        evening = hour >= 16
        prompt, output = (300, 500) if evening else (2500, 100)
        for seconds, factor in ((1800.0, 1.0), (120.0, 4.0), (HOUR_SECONDS - 1920.0, 1.0)):
            phases.append(
                Phase(
                    seconds=seconds,
                    requests_per_second=rate * factor,
                    prompt_tokens=prompt,
                    output_tokens=output,
                    spread=0.5,
                )
            )
    return draw_arrivals(phases, seed=1, max_requests=1 << 30)
