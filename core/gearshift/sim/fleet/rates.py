# SPDX-License-Identifier: Apache-2.0
"""The yardstick of the policy, from the performance model."""

from typing import Final

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout
from gearshift.perf.capacity import itl_seconds, prefill_tokens_per_second
from gearshift.policy.rates import EngineRates
from gearshift.sim.fleet.pod import arrangement
from gearshift.sim.fleet.settings import FleetSettings

PROMPT_TOKENS: Final = 2048
OUTPUT_TOKENS: Final = 256
SEQUENCES: Final = 33  # of one replica: enough to tell what each adds to a step


def rates(spec: InferenceServiceSpec, settings: FleetSettings) -> dict[Layout, EngineRates]:
    """Rates of one pod in each allowed layout, for prompts of `PROMPT_TOKENS`."""
    return {layout: _rates(spec, settings, layout) for layout in spec.parallelism.layouts}


def _rates(spec: InferenceServiceSpec, settings: FleetSettings, layout: Layout) -> EngineRates:
    profile, at = settings.profile, arrangement(spec, settings, layout)
    first = itl_seconds(profile, at, at.replicas, PROMPT_TOKENS)
    many = itl_seconds(profile, at, SEQUENCES * at.replicas, PROMPT_TOKENS)
    each = (many - first) / (SEQUENCES - 1)
    prefill = prefill_tokens_per_second(profile, at, PROMPT_TOKENS, settings.max_num_batched_tokens)
    sequence = each / at.replicas
    return EngineRates(prefill, first - each, sequence, PROMPT_TOKENS / prefill + OUTPUT_TOKENS * sequence)
