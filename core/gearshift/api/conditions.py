# SPDX-License-Identifier: Apache-2.0
"""Condition types of an ``InferenceService`` and how they are set, after Kubernetes' API conventions and kstatus."""

from datetime import datetime
from typing import Final, Literal

from pydantic import ConfigDict, Field

from gearshift.api.base import Model, Timestamp

READY: Final = "Ready"  # requests are served as the spec asks
RECONCILING: Final = "Reconciling"  # the operator is on its way to the spec
STALLED: Final = "Stalled"  # the operator can't go on without a human
SPEC_VALID: Final = "SpecValid"
ENGINES_READY: Final = "EnginesReady"
LAYOUT_CONVERGED: Final = "LayoutConverged"
ROLES_CONVERGED: Final = "RolesConverged"
METRICS_AVAILABLE: Final = "MetricsAvailable"
SHIFTING: Final = "Shifting"  # a transition is in flight
SCALING_ACTIVE: Final = "ScalingActive"  # the policy says how many pods there are, and may act on it
HELD: Final = "Held"  # a human has set the hold annotation

CONDITION_TYPES: Final = (
    READY, RECONCILING, STALLED, SPEC_VALID, ENGINES_READY, LAYOUT_CONVERGED, ROLES_CONVERGED, METRICS_AVAILABLE,
    SHIFTING, SCALING_ACTIVE, HELD,
)  # fmt: skip

ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(Model):
    """One condition."""

    model_config = ConfigDict(extra="ignore")

    type: str = Field(max_length=64, pattern=r"^[A-Za-z]+$")
    status: ConditionStatus
    reason: str = Field(max_length=128, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    message: str = Field(default="", max_length=2048)
    observed_generation: int = 0
    last_transition_time: Timestamp


def merge(old: list[Condition], new: list[Condition], now: datetime) -> list[Condition]:
    """Conditions to write: ``new`` with the transition time of ``old`` where the status did not change.

    Types that ``new`` does not name are kept as they were; the order is that of `CONDITION_TYPES`.
    """
    before = {condition.type: condition for condition in old}
    after = dict(before)
    for condition in new:
        known = before.get(condition.type)
        same = known is not None and known.status == condition.status
        at = known.last_transition_time if known is not None and same else now
        after[condition.type] = condition.model_copy(update={"last_transition_time": at})
    rank = {name: index for index, name in enumerate(CONDITION_TYPES)}
    return sorted(after.values(), key=lambda condition: (rank.get(condition.type, len(rank)), condition.type))
