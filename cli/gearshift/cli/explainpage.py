# SPDX-License-Identifier: Apache-2.0
"""``explain``: the last decision, the numbers behind it, what held it back and what nobody knows."""

from datetime import datetime

from gearshift.api import conditions, reasons
from gearshift.api.v1alpha1.status import Decision
from gearshift.api.vocabulary import Actuation
from gearshift.cli.advice import AT_REST, advice
from gearshift.cli.output import age, pairs, table
from gearshift.cli.service import Json, Service
from gearshift.cli.words import hold_words, order_words, transition_words, unseen, why

_UNKNOWN = "unknown: "  # how the condition MetricsAvailable begins its list


def page(service: Service, now: datetime) -> str:
    """Why the service is as it is, for people."""
    decision = service.status.last_decision
    if decision is None:
        return f"{service.where}: nothing has been decided yet\n"
    blocks = [_why(service, decision, now), _inputs(decision), _metrics(service)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def facts(service: Service) -> Json:
    """The same for machines."""
    decision = service.status.last_decision
    return {
        "name": service.name,
        "namespace": service.namespace,
        "decision": None if decision is None else decision.dump(),
        "heldBy": None if decision is None else held_by(decision),
        "todo": None if decision is None else advice(decision.reason, service.name, decision.plan),
        "proposed": proposed(service),
        "unknownMetrics": unknown_metrics(service),
        "actuation": service.actuation,
        "hold": service.hold,
        "override": service.body["spec"].get("override"),
        "transition": service.status.dump().get("transition"),
    }


def held_by(decision: Decision) -> str | None:
    """Reason that kept a decision from acting; None when it acts, or when nothing is wanted."""
    return decision.reason if decision.action == "Hold" and decision.reason not in AT_REST else None


def unknown_metrics(service: Service) -> list[str]:
    """Signals that are unknown, such as ``waiting of Prefill``."""
    told = service.condition(conditions.METRICS_AVAILABLE)
    if told is None or told.reason != reasons.METRICS_MISSING or not told.message.startswith(_UNKNOWN):
        return []
    return told.message.removeprefix(_UNKNOWN).split(", ")


def proposed(service: Service) -> list[str]:
    """What the plan that waits for approval would change, such as ``layout of chat-0 to DP``."""
    decision = service.status.last_decision
    if decision is None:
        return []
    start = f"plan {decision.plan}: "
    waiting = [each for each in service.status.conditions if each.message.startswith(start)]
    kinds = {conditions.LAYOUT_CONVERGED: "layout", conditions.ROLES_CONVERGED: "role"}
    return [f"{kinds.get(each.type, each.type)} of {each.message.removeprefix(start)}" for each in waiting]


def _why(service: Service, decision: Decision, now: datetime) -> list[str]:
    held, todo, moving = held_by(decision), advice(decision.reason, service.name, decision.plan), unseen(service)
    change, query = service.status.transition, decision.message.partition("; query ")[2]
    items = [
        ("Decision", f"{decision.action}, for {age(decision.at, now)}"),
        ("Plan", decision.plan),
        ("Because" if held is None else "Held by", why(decision)),
        *([("Query", query)] if query else []),
        *[("Proposed", words) for words in proposed(service)],
        *([("To do", todo)] if todo is not None else []),
        *([("Actuation", service.actuation)] if service.actuation != Actuation.AUTO else []),
        *([("Hold", hold_words(service))] if service.hold is not None else []),
        *([("Override", order_words(service, now))] if service.order is not None else []),
        *([("Transition", transition_words(change))] if change is not None else []),
        *([("Note", moving)] if moving is not None else []),
    ]
    return pairs(items)


def _inputs(decision: Decision) -> list[str]:
    return table(["INPUT", "VALUE"], sorted(decision.inputs.items())) if decision.inputs else []


def _metrics(service: Service) -> list[str]:
    told = service.condition(conditions.METRICS_AVAILABLE)
    if told is None:
        return []
    unknown = unknown_metrics(service)
    if unknown:
        return ["Unknown metrics:", *(f"  {signal}" for signal in unknown)]
    return [f"Metrics: {told.message}"]
