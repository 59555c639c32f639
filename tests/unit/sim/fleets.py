# SPDX-License-Identifier: Apache-2.0
"""Short ways to run a simulated fleet in tests."""

from collections.abc import Sequence
from typing import Any

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.perf.profiles import LLAMA_3_70B_FP8_H200
from gearshift.sim.fleet.controllers import Controller, controller
from gearshift.sim.fleet.settings import FleetSettings
from gearshift.sim.fleet.world import World
from gearshift.sim.load.arrivals import Arrival, Phase, draw_arrivals

SETTINGS = FleetSettings(profile=LLAMA_3_70B_FP8_H200)


def service(replicas: int = 2, least: int = 1, most: int = 6, **fields: Any) -> InferenceServiceSpec:
    """A service of pods of one accelerator, which scales."""
    base: dict[str, Any] = {
        "model": {"uri": "hf://org/model"},
        "engine": {"kind": "Simulated"},
        "pod": {"accelerators": 1},
        "roles": [{"name": "Unified", "replicas": replicas, "min": least, "max": most}],
    }
    return InferenceServiceSpec.model_validate({**base, **fields})


def load(*phases: tuple[float, float], prompt: int = 1000, output: int = 200, seed: int = 1) -> list[Arrival]:
    """Phases of (seconds, requests per second)."""
    drawn = [
        Phase(seconds=seconds, requests_per_second=rate, prompt_tokens=prompt, output_tokens=output, spread=0.5)
        for seconds, rate in phases
    ]
    return draw_arrivals(drawn, seed, 1 << 20)


def world(
    trace: Sequence[Arrival],
    policy: str | Controller = "ours",
    spec: InferenceServiceSpec | None = None,
    settings: FleetSettings = SETTINGS,
) -> World:
    """A fleet under a trace."""
    chosen = controller(policy, 1, 6, 16.0) if isinstance(policy, str) else policy
    return World(spec or service(), settings, chosen, trace)
