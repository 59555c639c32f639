# SPDX-License-Identifier: Apache-2.0
"""Status of an ``InferenceService``: what is, and why."""

from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from gearshift.api.base import Model, Timestamp
from gearshift.api.conditions import Condition
from gearshift.api.vocabulary import BridgePhase, Layout, PodPhase, Role, TransitionKind, TransitionResult

MAX_PODS = 64
MAX_HISTORY = 10
MAX_BRIDGES = 16
Text = Annotated[str, Field(max_length=1024)]
Short = Annotated[str, Field(max_length=253)]

_MAP_BY_NAME: dict[str, JsonValue] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
_MAP_BY_TYPE: dict[str, JsonValue] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


class StatusModel(Model):
    """Base of status parts: a reader ignores what a newer operator wrote."""

    model_config = ConfigDict(extra="ignore")


class RoleStatus(StatusModel):
    """Pods of one role."""

    name: Role
    desired: int = 0
    ready: int = 0


class PodStatus(StatusModel):
    """One engine pod as its sidecar reports it."""

    name: Short
    role: Role
    layout: Layout
    epoch: int
    phase: PodPhase
    ready: bool = False
    shift_threshold_tokens: int | None = Field(
        default=None, description="In layout Shift: scheduled tokens above which a step runs sequence parallel."
    )


class PodSummary(StatusModel):
    """Counts that stand for the pod list when it would be too long."""

    total: int
    by_phase: dict[PodPhase, int] = Field(default={}, max_length=16)
    by_layout: dict[Layout, int] = Field(default={}, max_length=8)


class ProofStatus(StatusModel):
    """Evidence of a committed transition."""

    epoch: int
    ranks: int
    probe_tokens: int
    routers: int


class TransitionRecord(StatusModel):
    """A transition, running or past."""

    id: Short
    pod: Short
    kind: TransitionKind
    from_: Short = Field(alias="from")
    to: Short
    phase: PodPhase
    result: TransitionResult
    reason: Short = ""
    message: Text = ""
    started_at: Timestamp
    finished_at: Timestamp | None = None
    duration_milliseconds: int | None = None
    proof: ProofStatus | None = None
    retryable: bool | None = Field(
        default=None, description="Of a failure: whether another try may succeed, or only another pod or a human helps."
    )


class ApprovalStatus(StatusModel):
    """The approval that the operator has seen."""

    plan: Short
    until: Timestamp


class BridgeStatus(StatusModel):
    """A pod that stands in, in another role, for one that starts."""

    pod: Short
    uid: Short
    from_: Role = Field(alias="from")
    to: Role
    awaits: Short = Field(description="The pod that starts; once it serves, the other one goes back.")
    awaits_uid: Short = Field(alias="awaitsUID")
    phase: BridgePhase


class PhaseLoad(StatusModel):
    """What one phase of the requests is asked for, and what its pods could do."""

    demand_tokens_per_second: int | None = Field(default=None, description="Left out while it is not known.")
    capacity_tokens_per_second: int | None = Field(
        default=None,
        description="Of the serving pods, doing nothing else, within the objectives; left out while it is not known.",
    )


class LoadStatus(StatusModel):
    """Demand and capacity, to two digits; written anew at most once a minute, and only when a number has moved."""

    prefill: PhaseLoad = Field(
        default=PhaseLoad(), description="Prompt tokens that are computed, those of the prefix cache left out."
    )
    decode: PhaseLoad = Field(default=PhaseLoad(), description="Generated tokens.")
    prefix_hit_percent: int | None = Field(default=None, description="Of the prompt tokens.")
    capacity_from: Short = Field(default="", description="Where the capacity is known from, or what is not known.")
    at: Timestamp


class StartupStatus(StatusModel):
    """How long pods of the present revision take from creation to serving."""

    seconds: int = Field(description="Median of the pods that were seen to start.")
    pods: int = Field(description="How many these are, at most 16.")
    revision: Short


class Decision(StatusModel):
    """What the policy last decided, and from what."""

    plan: Short  # id; the value that approves it
    action: Short  # Hold, or the actions in words
    reason: Short
    message: Text = ""
    inputs: dict[str, Short] = Field(default={}, max_length=32)
    at: Timestamp


class InferenceServiceStatus(StatusModel):
    """Observed state."""

    observed_generation: int = 0
    conditions: list[Condition] = Field(default=[], max_length=16, json_schema_extra=_MAP_BY_TYPE)
    grown_at: Timestamp | None = Field(
        default=None, description="When all pods served for the first time, since the service was last scaled to zero."
    )
    replicas: int = 0
    ready_replicas: int = 0
    selector: Text = ""
    roles: list[RoleStatus] = Field(default=[], max_length=3, json_schema_extra=_MAP_BY_NAME)
    layout: Short = Field(default="", description="Layouts in use, for people.")
    split: Short = Field(
        default="", description="Ready prefill/decode pods, for people; empty when roles are not split."
    )
    url: Text = Field(default="", description="Address of the router inside the cluster.")
    pods: list[PodStatus] = Field(default=[], max_length=MAX_PODS, json_schema_extra=_MAP_BY_NAME)
    pod_summary: PodSummary | None = None
    transition: TransitionRecord | None = None
    transition_history: list[TransitionRecord] = Field(default=[], max_length=MAX_HISTORY)
    last_decision: Decision | None = None
    load: LoadStatus | None = None
    startup: StartupStatus | None = None
    bridges: list[BridgeStatus] = Field(
        default=[], max_length=MAX_BRIDGES, description="Pods that stand in, in another role, for pods that start."
    )
    approval: ApprovalStatus | None = Field(
        default=None, description="The plan that a human has approved, and until when."
    )
