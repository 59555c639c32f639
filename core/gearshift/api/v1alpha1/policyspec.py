# SPDX-License-Identifier: Apache-2.0
"""The part of the spec that bounds decisions: policy and override."""

from datetime import datetime
from typing import Self

from pydantic import ConfigDict, Field, model_validator

from gearshift.api.base import Duration, FrozenModel
from gearshift.api.v1alpha1 import specrules
from gearshift.api.v1alpha1.rules import check, schema
from gearshift.api.vocabulary import Actuation, Layout, MetricSignal, QueryScope, Role


class Objectives(FrozenModel):
    """Latency that the service should keep."""

    ttft: Duration = Field(default=Duration("1500ms"), description="Time to first token at the 90th percentile.")
    itl: Duration = Field(default=Duration("50ms"), description="Inter-token latency at the 90th percentile.")


class SignalQuery(FrozenModel):
    """A user's query in the place of Gearshift's own."""

    signal: MetricSignal = Field(
        description="What the query answers: Waiting, Running and TransfersWaiting in requests, sum over pods; KvUsage "
        "and PrefixHitShare as a share of 0 to 1; RequestRate, PromptTokenRate and GenerationTokenRate per second; "
        "TtftP90 and ItlP90 in seconds."
    )
    scope: QueryScope = Field(
        default=QueryScope.SERVICE, description="Whose signal it is: of all pods, or of those in one role."
    )
    query: str = Field(
        min_length=1,
        max_length=1024,
        description="PromQL with one number as its answer. Series are read from the namespace of the service only, and "
        "reach back 1h at most. $window, $pods (a regular expression), $service and $namespace are filled in.",
    )


class Policy(FrozenModel):
    """How decisions are made and what becomes of them."""

    model_config = ConfigDict(json_schema_extra=schema(specrules.POLICY))

    actuation: Actuation = Field(
        default=Actuation.AUTO, description="Advisory reports, Approve waits for a human, Auto acts."
    )
    objectives: Objectives = Objectives()
    window: Duration = Field(default=Duration("30s"), description="Span of metrics that a decision looks at.")
    dwell: Duration = Field(default=Duration("30s"), description="Least time that a pod keeps a layout or role.")
    cooldown: Duration = Field(
        default=Duration("15s"), description="Least time between two transitions of the service."
    )
    drain_timeout: Duration = Field(
        default=Duration("60s"), description="Longest wait for requests in flight before a transition is given up."
    )

    max_transitions_per_hour: int | None = Field(
        default=None,
        ge=1,
        le=3600,
        description="Most changes of layout or role that the policy makes in an hour; 12, or 6 for each pod if that is "
        "more, when left out. Overrides and bounds are not counted against it.",
    )
    max_accelerators: int | None = Field(
        default=None,
        ge=0,
        le=8000,
        description="Budget: no pod is added with which the service would hold more accelerators. No limit when left "
        "out.",
    )

    queries: list[SignalQuery] = Field(
        default=[],
        max_length=32,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["signal", "scope"]},
        description="Queries in the place of Gearshift's own, for engines behind other metrics.",
    )

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check(specrules.POLICY, self)
        return self


class Override(FrozenModel):
    """A human's order on layout or role, with an expiry; atomic, since halves of two orders are no order."""

    model_config = ConfigDict(json_schema_extra={**schema(specrules.OVERRIDE), "x-kubernetes-map-type": "atomic"})

    layout: Layout | None = Field(default=None, description="All pods take this layout.")
    role: Role | None = Field(default=None, description="All pods above the other roles' floors take this role.")
    until: datetime = Field(description="When the order ends.")

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check(specrules.OVERRIDE, self)
        return self
