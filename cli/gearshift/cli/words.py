# SPDX-License-Identifier: Apache-2.0
"""Decisions, transitions and what humans have said, in the words that all commands use."""

from datetime import UTC, datetime

from gearshift.api.approval import Approval
from gearshift.api.base import rfc3339
from gearshift.api.v1alpha1.status import Decision, TransitionRecord
from gearshift.cli.output import span
from gearshift.cli.service import Service


def transition_words(record: TransitionRecord) -> str:
    """``Layout of chat-1: TP -> DP``."""
    return f"{record.kind.value} of {record.pod}: {record.from_} -> {record.to}"


def why(decision: Decision) -> str:
    """``Cooldown: the last transition ended 3 s ago``."""
    message = message_words(decision)
    return f"{decision.reason}: {message}" if message else decision.reason


def message_words(decision: Decision) -> str:
    """The message without what a command shows elsewhere: plan id and query."""
    return decision.message.removesuffix(f"; approve plan {decision.plan}").partition("; query ")[0]


def decision_words(decision: Decision) -> str:
    """``Hold, Cooldown: the last transition ended 3 s ago``."""
    return f"{decision.action}, {why(decision)}"


def order_words(service: Service, now: datetime) -> str:
    """The override with what is left of it, or ``none``."""
    order = service.order
    if order is None:
        return "none"
    return f"{order.words} until {rfc3339(order.until)} ({_left(order.until, now)})"


def approval_words(approval: Approval, now: datetime) -> str:
    """``plan 0123456789ab until 2026-12-01T18:00:00Z (14m left)``."""
    if approval.until is None:
        return f"plan {approval.plan}"
    until = datetime.fromtimestamp(approval.until, UTC)
    return f"plan {approval.plan} until {rfc3339(until)} ({_left(until, now)})"


def shape_words(service: Service) -> str:
    """``layout DP, roles 1 Prefill, 3 Decode``."""
    roles = ", ".join(f"{role.ready} {role.name.value}" for role in service.status.roles)
    return f"layout {service.status.layout or '-'}, roles {roles or '-'}"


def hold_words(service: Service) -> str:
    """The hold annotation, or ``none``."""
    return "none" if service.hold is None else f"yes: {service.hold}" if service.hold != "true" else "yes"


def unseen(service: Service) -> str | None:
    """What to know of a status that is not of this spec, or None."""
    status = service.status
    if not status.conditions:
        return "the operator has not reported on it yet"
    if status.observed_generation < service.generation:
        return f"the operator has seen generation {status.observed_generation}, the spec is at {service.generation}"
    return None


def _left(until: datetime, now: datetime) -> str:
    left = (until - now).total_seconds()
    return f"{span(left)} left" if left > 0 else f"expired {span(-left)} ago"
