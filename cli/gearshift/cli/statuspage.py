# SPDX-License-Identifier: Apache-2.0
"""``status``: what a service is, what it does now and what a human has ordered; for people and for machines."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from gearshift.api import conditions
from gearshift.api.v1alpha1.status import BridgeStatus, PodStatus, StartupStatus, TransitionRecord
from gearshift.cli.output import age, counted, pairs, shortened, span, table
from gearshift.cli.service import Json, Service
from gearshift.cli.words import approval_words, decision_words, hold_words, order_words, transition_words, unseen


def one(service: Service, now: datetime) -> str:
    """The page of one service."""
    blocks = [_head(service, now), _conditions(service, now), _load(service, now), _roles(service), _pods(service)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def many(services: Iterable[Service], now: datetime, *, namespaces: bool) -> str:
    """One line for each service."""
    head = ["NAME", "READY", "LAYOUT", "P/D", "PODS", "ACTUATION", "HUMAN", "DECISION", "AGE"]
    rows = [_row(service, now) for service in services]
    if namespaces:
        head = ["NAMESPACE", *head]
        rows = [[service.namespace, *row] for service, row in zip(services, rows, strict=True)]
    return "\n".join(table(head, rows)) + "\n"


def facts(service: Service, now: datetime) -> Json:
    """The same for machines: names as in the API."""
    status = service.status.dump()
    shown = (
        "conditions", "replicas", "readyReplicas", "layout", "split", "url", "load", "startup", "roles", "bridges",
        "pods", "podSummary",
    )  # fmt: skip
    moving = ("transition", "lastDecision")
    order = service.order
    return {
        "name": service.name,
        "namespace": service.namespace,
        "generation": service.generation,
        "observedGeneration": service.status.observed_generation,
        "actuation": service.actuation,
        "hold": service.hold,
        "override": None if order is None else {**service.body["spec"]["override"], "active": order.until > now},
        "approval": None if service.approval is None else str(service.approval),
        **{key: status[key] for key in shown if key in status},
        **{key: status.get(key) for key in moving},
    }


def _head(service: Service, now: datetime) -> list[str]:
    status = service.status
    ready = service.condition(conditions.READY)
    decision, moving, behind = status.last_decision, status.transition, unseen(service)
    items = [
        ("Name", f"{service.namespace}/{service.name}"),
        ("Model", str(service.body["spec"]["model"]["uri"])),
        ("Ready", "Unknown" if ready is None else f"{ready.status} ({ready.reason}): {ready.message}"),
        ("Pods", f"{status.ready_replicas} of {status.replicas} serve"),
        ("Layout", status.layout or "-"),
        *([("P/D", status.split)] if status.split else []),
        ("Actuation", service.actuation),
        ("Hold", hold_words(service)),
        ("Override", order_words(service, now)),
        *([("Approved", approval_words(service.approval, now))] if service.approval is not None else []),
        ("Transition", "none" if moving is None else _moving(moving, now)),
        *[("Bridge", _bridge(bridge)) for bridge in status.bridges],
        ("Decision", "none yet" if decision is None else decision_words(decision)),
        *([("Plan", f"{decision.plan}, for {age(decision.at, now)}")] if decision is not None else []),
        *([("Start-up", _startup(status.startup))] if status.startup is not None else []),
        *([("URL", status.url)] if status.url else []),
        *([("Note", behind)] if behind is not None else []),
        *([("Note", service.said.problem)] if service.said.problem else []),
    ]
    return pairs(items)


def _bridge(bridge: BridgeStatus) -> str:
    return f"{bridge.pod} as {bridge.to} in the place of {bridge.awaits}, which starts: {bridge.phase}"


def _startup(startup: StartupStatus) -> str:
    return f"{span(startup.seconds)} from creation to serving (median of {counted(startup.pods, 'pod')})"


def _moving(record: TransitionRecord, now: datetime) -> str:
    return f"{transition_words(record)}, {record.phase.value}, began {age(record.started_at, now)} ago"


def _conditions(service: Service, now: datetime) -> list[str]:
    rows = [
        [each.type, each.status, each.reason, age(each.last_transition_time, now), shortened(each.message)]
        for each in service.status.conditions
    ]
    return table(["CONDITION", "STATUS", "REASON", "AGE", "MESSAGE"], rows) if rows else []


def _load(service: Service, now: datetime) -> list[str]:
    load = service.status.load
    if load is None:
        return []
    phases = (("prefill", load.prefill), ("decode", load.decode))
    rows = [
        [name, _rate(each.demand_tokens_per_second), _rate(each.capacity_tokens_per_second)] for name, each in phases
    ]
    hits = "" if load.prefix_hit_percent is None else f"; {load.prefix_hit_percent} % of the prompt tokens were cached"
    known = f"capacity: {load.capacity_from}; " if load.capacity_from else ""
    return [*table(["LOAD", "DEMAND", "CAPACITY"], rows), f"({known}written {age(load.at, now)} ago{hits})"]


def _rate(tokens_per_second: int | None) -> str:
    return "unknown" if tokens_per_second is None else f"{tokens_per_second} tok/s"


def _roles(service: Service) -> list[str]:
    rows = [[each.name.value, str(each.desired), str(each.ready)] for each in service.status.roles]
    return table(["ROLE", "DESIRED", "READY"], rows) if rows else []


def _pods(service: Service) -> list[str]:
    summary = service.status.pod_summary
    if summary is not None:
        phases = ", ".join(f"{count} {phase}" for phase, count in sorted(summary.by_phase.items()))
        layouts = ", ".join(f"{count} {layout}" for layout, count in sorted(summary.by_layout.items()))
        return [f"{counted(summary.total, 'pod')}: {phases}; layouts: {layouts}"]
    pods = service.status.pods
    if not pods:
        return []
    head = ["POD", "ROLE", "LAYOUT", "EPOCH", "PHASE", "READY"]
    threshold = any(pod.shift_threshold_tokens is not None for pod in pods)
    return table([*head, *(["THRESHOLD"] if threshold else [])], [_pod(pod, threshold=threshold) for pod in pods])


def _pod(pod: PodStatus, *, threshold: bool) -> list[str]:
    cells = [pod.name, pod.role.value, pod.layout.value, str(pod.epoch), pod.phase.value, "yes" if pod.ready else "no"]
    if threshold:
        cells.append("-" if pod.shift_threshold_tokens is None else f"{pod.shift_threshold_tokens} tokens")
    return cells


def _row(service: Service, now: datetime) -> list[str]:
    status = service.status
    ready, decision = service.condition(conditions.READY), status.last_decision
    done = "-" if decision is None else decision.reason if decision.action == "Hold" else decision.action
    return [
        service.name,
        "Unknown" if ready is None else ready.status,
        status.layout or "-",
        status.split or "-",
        f"{status.ready_replicas}/{status.replicas}",
        service.actuation,
        _human(service, now),
        done,
        age(service.created_at, now),
    ]


def _human(service: Service, now: datetime) -> str:
    order = service.order
    words = ["hold"] if service.hold is not None else []
    if order is not None and order.until > now:
        words.append(f"{order.words} ({age(now, order.until)})")
    return ", ".join(words) or "-"


def listed(services: Iterable[Service], now: datetime) -> Any:
    """The list for machines."""
    return {"items": [facts(service, now) for service in services]}
