# SPDX-License-Identifier: Apache-2.0
"""Whether an order to change the pod is accepted: pure, and the only place that knows the refusals and their order."""

from collections.abc import Collection
from dataclasses import dataclass

from gearshift.api import reasons
from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind
from gearshift.api.wire import ControlError, TransitionRequest, TransitionStatus
from gearshift.sidecar.ledger import Record


@dataclass(frozen=True, slots=True)
class Capability:
    """What this pod can become now."""

    layouts: frozenset[Layout]
    roles: frozenset[Role]
    undrained: frozenset[Layout]  # layouts that can be switched to under running requests
    shift_threshold_tokens: int | None = None  # that the engine holds now, in layout Shift
    shift_floor_tokens: int = 0  # least threshold that it can be given


@dataclass(frozen=True, slots=True)
class Accepted:
    """The order is to be carried out."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """The order was given before."""

    status: TransitionStatus


@dataclass(frozen=True, slots=True)
class Refused:
    """The order is not carried out; ``code`` is the HTTP status."""

    code: int
    error: ControlError


Judgement = Accepted | Repeated | Refused


def roles_of(config: PodConfig) -> frozenset[Role]:
    """Roles that the pod can take: split roles need a KV connector, which only a disaggregated service starts with."""
    return frozenset(Role) if config.disaggregated else frozenset({Role.UNIFIED})


def judge(record: Record, request: TransitionRequest, capability: Capability) -> Judgement:
    """Decide about one order."""
    known = record.find(request.id)
    if known is not None:
        return _repeat(record, request, known)
    return (
        _check_fence(record, request)
        or _check_target(record, request, capability)
        or _check_threshold(request, capability)
        or _check_moment(record)
        or _check_epoch(record, request)
        or _check_change(record, request, capability)
        or Accepted()
    )


def _repeat(record: Record, request: TransitionRequest, known: TransitionStatus) -> Judgement:
    same = (known.kind, known.to, known.shift_threshold_tokens)
    if same == (request.kind, request.to, request.shift_threshold_tokens):
        return Repeated(known)
    message = f"id {request.id!r} belongs to a {known.kind.value} transition to {known.to}, not to {request.to}"
    return _conflict(record, reasons.ID_REUSED, message)


def _check_fence(record: Record, request: TransitionRequest) -> Refused | None:
    if request.fencing_token >= record.fencing_token:
        return None
    message = f"fencingToken {request.fencing_token} is older than {record.fencing_token}"
    return _conflict(record, reasons.STALE_FENCING_TOKEN, message)


def _check_target(record: Record, request: TransitionRequest, capability: Capability) -> Refused | None:
    if request.kind is TransitionKind.ROLE:
        return _not_among("role", request.to, capability.roles)
    refusal = _not_among("layout", request.to, capability.layouts)
    if refusal is None and request.drain == "None" and Layout(request.to) not in capability.undrained:
        change = f"{record.layout.value} to {request.to}"
        return _incapable(f"a switch from {change} changes the engine: drain must be Wait")
    return refusal


def _check_threshold(request: TransitionRequest, capability: Capability) -> Refused | None:
    threshold = request.shift_threshold_tokens
    if threshold is None:
        return None
    if request.kind is not TransitionKind.LAYOUT or request.to != Layout.SHIFT:
        return _incapable(f"shiftThresholdTokens {threshold}: only layout Shift has a threshold, not {request.to}")
    if threshold < capability.shift_floor_tokens:
        floor = capability.shift_floor_tokens
        return _incapable(f"shiftThresholdTokens {threshold} is below {floor}, the largest graph that was captured")
    return None


def _not_among(what: str, value: str, allowed: Collection[Layout] | Collection[Role]) -> Refused | None:
    names = sorted(item.value for item in allowed)
    if value in names:
        return None
    return _incapable(f"this pod cannot take {what} {value!r}, only {', '.join(names)}")


def _check_moment(record: Record) -> Refused | None:
    if record.order is not None:
        return _conflict(record, reasons.TRANSITION_IN_FLIGHT, f"transition {record.order.id!r} is in flight")
    if record.phase is not PodPhase.SERVING:
        return _conflict(record, reasons.NOT_SERVING, f"the pod is {record.phase.value}: {record.message}".rstrip(": "))
    return None


def _check_epoch(record: Record, request: TransitionRequest) -> Refused | None:
    if request.expected_epoch == record.epoch:
        return None
    return _conflict(
        record, reasons.STALE_EPOCH, f"expectedEpoch {request.expected_epoch} is not the epoch {record.epoch}"
    )


def _check_change(record: Record, request: TransitionRequest, capability: Capability) -> Refused | None:
    present = record.layout.value if request.kind is TransitionKind.LAYOUT else record.role.value
    if request.to != present or request.shift_threshold_tokens not in (None, capability.shift_threshold_tokens):
        return None
    return _refuse(422, reasons.NO_CHANGE, f"{request.kind.value.lower()} is {present} already")


def _conflict(record: Record, reason: str, message: str) -> Refused:
    error = ControlError(reason=reason, message=message, epoch=record.epoch, fencing_token=record.fencing_token)
    return Refused(409, error)


def _incapable(message: str) -> Refused:
    return _refuse(422, reasons.NOT_CAPABLE, message)


def _refuse(code: int, reason: str, message: str) -> Refused:
    return Refused(code, ControlError(reason=reason, message=message))
