# SPDX-License-Identifier: Apache-2.0
"""Control API of the sidecar (port ``names.PORT_CONTROL``): what operator and router say to a pod and hear from it.

| request | who | body -> answer |
|---|---|---|
| ``GET /v1/state`` | operator, router | -> `PodState` |
| ``GET /v1/state/stream?router=NAME`` | router | -> newline-delimited `PodState`, see below |
| ``POST /v1/acks`` | router | `Ack` -> 204 |
| ``POST /v1/transitions`` | operator | `TransitionRequest` -> 202 `TransitionStatus`; 409 or 422 `ControlError` |
| ``GET /v1/transitions/{id}`` | operator | -> `TransitionStatus`; 404 |

NAME is the router's name in its `Ack`: while a router holds a stream, a drain waits for its acknowledgement. A stream
without a name only watches.
The stream sends one state at once, one a change, at least one every 100 ms while load changes and one a second.
409: stale epoch or fencing token, or another transition in flight. 422: this pod is not capable of it.
Each request carries ``Authorization: Bearer`` with a projected token of audience ``names.TOKEN_AUDIENCE``.
Repeating a request with the same id is harmless: the status of the first one is returned.
"""

from typing import Annotated, Literal

from pydantic import Field

from gearshift.api.base import Duration, TolerantModel
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind, TransitionResult

Name = Annotated[str, Field(min_length=1, max_length=253)]


class Load(TolerantModel):
    """Load of a pod as its engines report it."""

    running: int = 0  # requests in the batch
    waiting: int = 0  # requests queued in the engine
    kv_usage: float = 0.0  # used share of the KV cache, 0..1


class Proof(TolerantModel):
    """Evidence that a transition took effect. A transition without it is rolled back."""

    epoch_before: int
    epoch_after: int
    ranks: int  # ranks that confirmed the new state
    expected_ranks: int
    engine: str  # resident engine that answered
    probe_tokens: int  # tokens that the probe request got from the new layout or role
    probe_seconds: float
    routers: int  # routers whose view was confirmed
    details: dict[str, str] = Field(default_factory=dict)  # what the engine reports of itself after the switch


class TransitionRequest(TolerantModel):
    """Order to change the layout or the role of one pod; or, within layout Shift, its threshold."""

    id: Name
    kind: TransitionKind
    to: str  # a Layout or a Role, by kind
    expected_epoch: int = Field(ge=0)
    fencing_token: int = Field(ge=0)
    drain: Literal["Wait", "None"] = (
        "Wait"  # Wait: finish what is in flight; None: switch under it where the engine can
    )
    drain_timeout: Duration = Duration("60s")
    shift_threshold_tokens: int | None = Field(default=None, ge=0)  # with layout Shift; None: as it is


class TransitionStatus(TolerantModel):
    """Progress of one transition."""

    id: Name
    kind: TransitionKind
    from_: str = Field(alias="from")
    to: str
    phase: PodPhase
    result: TransitionResult = TransitionResult.RUNNING
    started_at: float  # seconds since the epoch
    finished_at: float | None = None
    reason: str = ""  # CamelCase, from gearshift.api.reasons
    message: str = ""
    retryable: bool = True
    proof: Proof | None = None
    seconds_by_phase: dict[str, float] = Field(default_factory=dict)
    shift_threshold_tokens: int | None = None  # as ordered


class PodState(TolerantModel):
    """Everything the router needs to send, and the operator to decide."""

    pod: Name
    uid: str
    sequence: int  # grows with every change that a router must know (not with load)
    epoch: int  # committed transitions of this pod
    phase: PodPhase
    admitting: bool  # new requests are welcome
    role: Role
    layout: Layout
    layouts: list[Layout]  # what this pod can switch to, the present one included
    shift_threshold_tokens: int | None = None  # in layout Shift: the threshold that its engine holds
    engine_port: int  # port of the active resident engine
    model: str  # served model name
    load: Load = Field(default_factory=Load)
    transition: TransitionStatus | None = None  # running, or the last one
    fencing_token: int = 0  # highest one seen
    since: float = 0.0  # when the phase began, seconds since the epoch
    message: str = ""  # why the pod is not serving; last engine log lines when Failed


class Ack(TolerantModel):
    """A router's word that it acts on a state."""

    router: Name  # unique per router process
    sequence: int  # newest PodState.sequence that the router applies
    in_flight: int = Field(ge=0)  # its requests that this pod still owes; a prefill's until its decode streams


class ControlError(TolerantModel):
    """Body of every error answer of the control API."""

    reason: str
    message: str
    epoch: int | None = None  # present epoch, on 409
    fencing_token: int | None = None  # highest one seen, on 409
