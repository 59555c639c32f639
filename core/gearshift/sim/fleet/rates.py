# SPDX-License-Identifier: Apache-2.0
"""The yardstick of the policy, from the performance model."""

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout
from gearshift.perf.yardstick import by_profile
from gearshift.policy.rates import EngineRates
from gearshift.sim.fleet.pod import arrangement
from gearshift.sim.fleet.settings import FleetSettings


def rates(spec: InferenceServiceSpec, settings: FleetSettings) -> dict[Layout, EngineRates]:
    """Rates of one pod in each allowed layout."""
    return {layout: _rates(spec, settings, layout) for layout in spec.parallelism.layouts}


def _rates(spec: InferenceServiceSpec, settings: FleetSettings, layout: Layout) -> EngineRates:
    found = by_profile(settings.profile, arrangement(spec, settings, layout), settings.max_num_batched_tokens)
    return EngineRates(
        found.prefill_tokens_per_second, found.step_seconds, found.sequence_seconds, found.request_seconds
    )
