# SPDX-License-Identifier: Apache-2.0
"""Status of a service from a snapshot and a plan: pure, so that it is a table and not a story.

Nothing here changes from tick to tick while nothing changes in the service: numbers that drift, such as load and the
inputs of a decision that is the same as before, stay as they were first written.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gearshift.api import conditions, reasons
from gearshift.api.conditions import Condition
from gearshift.api.v1alpha1.status import (
    MAX_PODS,
    ApprovalStatus,
    BridgeStatus,
    Decision,
    InferenceServiceStatus,
    LoadStatus,
    PodStatus,
    PodSummary,
    RoleStatus,
    StartupStatus,
    TransitionRecord,
)
from gearshift.api.vocabulary import Role, TransitionKind
from gearshift.policy.bridge import bridge_status
from gearshift.policy.conditionview import Observed, conditions_of, invalid_conditions
from gearshift.policy.fleet import Fleet
from gearshift.policy.history import moment
from gearshift.policy.loadview import load_status
from gearshift.policy.plan import Action, CreatePod, DeletePod, Memory, Plan, Transit
from gearshift.policy.scale import asked
from gearshift.policy.snapshot import PodView, Snapshot
from gearshift.policy.startup import startup_status
from gearshift.policy.targets import total_target


@dataclass(frozen=True, slots=True)
class Report:
    """What the status tells beside snapshot and plan."""

    observed: Observed
    running: TransitionRecord | None = None
    history: tuple[TransitionRecord, ...] = ()
    selector: str = ""
    url: str = ""
    memory: Memory | None = None
    yardstick: str = ""  # where the rates of a pod come from, or what is not known of them


def status(snapshot: Snapshot, plan: Plan, previous: InferenceServiceStatus, report: Report) -> InferenceServiceStatus:
    """The status to write; equal to ``previous`` when there is nothing new to tell."""
    given, snapshot = snapshot, asked(snapshot, plan.pods)
    fleet = Fleet.of(snapshot)
    ordered = fleet.pods
    many = len(ordered) > MAX_PODS
    grown = _grown_at(previous)
    shown = conditions_of(given, fleet, plan, report.observed, report.running, grown=grown is not None)
    return normal(
        InferenceServiceStatus(
            observed_generation=snapshot.generation,
            conditions=conditions.merge(previous.conditions, shown, moment(snapshot.at)),
            grown_at=(grown or moment(snapshot.at))
            if _serves(shown)
            else grown
            if total_target(snapshot.spec)
            else None,
            replicas=len(fleet.live),
            ready_replicas=len(fleet.serving),
            selector=report.selector,
            roles=_roles(snapshot, fleet, plan),
            layout=layout_column(fleet.live),
            split=_split(snapshot, fleet),
            url=report.url,
            pods=[] if many else [_pod(pod) for pod in ordered],
            pod_summary=_summary(ordered) if many else None,
            transition=report.running,
            transition_history=list(report.history),
            last_decision=_decision(plan, previous.last_decision, snapshot.at),
            **_remembered(given, plan, fleet, previous, report),
        )
    )


def _remembered(
    snapshot: Snapshot, plan: Plan, fleet: Fleet, previous: InferenceServiceStatus, report: Report
) -> dict[str, LoadStatus | StartupStatus | ApprovalStatus | list[BridgeStatus] | None]:
    """What is told from the memory; nothing without one."""
    memory = report.memory
    if memory is None:
        return {}
    return {
        "load": load_status(snapshot, memory, fleet, report.yardstick, previous.load),
        "startup": startup_status(memory, snapshot.revision),
        "approval": _approval(memory),
        "bridges": bridge_status(memory, plan, fleet),
    }


def _approval(memory: Memory) -> ApprovalStatus | None:
    approved = memory.approved
    return None if approved is None else ApprovalStatus(plan=approved.plan[:253], until=moment(approved.until))


def _serves(shown: Iterable[Condition]) -> bool:
    return any((each.type, each.status, each.reason) == (conditions.READY, "True", reasons.SERVING) for each in shown)


def _grown_at(previous: InferenceServiceStatus) -> datetime | None:
    """When all pods served for the first time. A service that was Ready counts as grown."""
    ready = next((each for each in previous.conditions if _serves([each])), None)
    return previous.grown_at or (ready.last_transition_time if ready is not None else None)


def refused(
    previous: InferenceServiceStatus, generation: int, reason: str, message: str, at: float
) -> InferenceServiceStatus:
    """Status of a spec that can't be read at all: what was known stays, and the conditions say why nothing moves."""
    shown = invalid_conditions(generation, reason, message, moment(at))
    merged = conditions.merge(previous.conditions, shown, moment(at))
    return normal(previous.model_copy(update={"observed_generation": generation, "conditions": merged}))


def normal(status: InferenceServiceStatus) -> InferenceServiceStatus:
    """The status as it comes back from the API server, so that equal ones compare equal."""
    return InferenceServiceStatus.model_validate(status.dump())


def layout_column(pods: Iterable[PodView]) -> str:
    """``TP``, or ``DP=1,TP=2`` when pods differ."""
    counts = Counter(pod.layout.value for pod in pods)
    if len(counts) == 1:
        return next(iter(counts))
    return ",".join(f"{layout}={count}" for layout, count in sorted(counts.items()))


def _split(snapshot: Snapshot, fleet: Fleet) -> str:
    if not snapshot.spec.disaggregated:
        return ""
    return f"{fleet.serving_roles.get(Role.PREFILL, 0)}/{fleet.serving_roles.get(Role.DECODE, 0)}"


def _roles(snapshot: Snapshot, fleet: Fleet, plan: Plan) -> list[RoleStatus]:
    """Desired: live pods of the role and those on their way into it, less those on their way out."""
    target = {pod.name: pod.role for pod in fleet.live}
    orders = [(flight.pod, flight.kind, flight.to) for flight in snapshot.in_flight]
    orders += [(action.pod, action.kind, action.to) for action in plan.actions if isinstance(action, Transit)]
    target |= {pod: Role(to) for pod, kind, to in orders if kind is TransitionKind.ROLE and pod in target}
    for action in plan.actions:
        if isinstance(action, CreatePod):
            target[f"+{action.ordinal}"] = action.role
        elif isinstance(action, DeletePod):
            target.pop(action.name, None)
    desired = Counter(target.values())
    return [
        RoleStatus(name=role.name, desired=desired[role.name], ready=fleet.serving_roles.get(role.name, 0))
        for role in snapshot.spec.roles
    ]


def _pod(pod: PodView) -> PodStatus:
    return PodStatus(
        name=pod.name,
        role=pod.role,
        layout=pod.layout,
        epoch=pod.epoch,
        phase=pod.phase,
        ready=pod.serving,
        shift_threshold_tokens=pod.shift_threshold_tokens,
    )


def _summary(pods: tuple[PodView, ...]) -> PodSummary:
    return PodSummary(
        total=len(pods),
        by_phase=dict(Counter(pod.phase for pod in pods)),
        by_layout=dict(Counter(pod.layout for pod in pods)),
    )


def _decision(plan: Plan, previous: Decision | None, at: float) -> Decision:
    """The last decision; message, inputs and time are those of the first tick that decided so."""
    action = describe(plan)
    reason = plan.hold.reason if plan.hold is not None else plan.reason
    if previous is not None and (previous.plan, previous.action, previous.reason) == (plan.id, action, reason):
        return previous
    message = plan.hold.message if plan.hold is not None else plan.message
    inputs = {key[:253]: value[:253] for key, value in list(plan.inputs.items())[:32]}
    return Decision(
        plan=plan.id[:253], action=action, reason=reason, message=message[:1024], inputs=inputs, at=moment(at)
    )


def describe(plan: Plan) -> str:
    """The actions in words, at most 253 characters."""
    if not plan.actions:
        return "Hold"
    words = [_words(action) for action in plan.actions]
    text = ", ".join(words)
    return text if len(text) <= 253 else f"{text[:230]}... ({len(words)} actions)"


def _words(action: Action) -> str:
    match action:
        case CreatePod():
            return f"create {action.ordinal} as {action.role.value} {action.layout.value}"
        case DeletePod():
            return f"delete {action.name}"
        case Transit():
            if action.threshold_tokens is not None:
                return f"threshold of {action.pod} to {action.threshold_tokens} tokens"
            return f"{action.kind.value} of {action.pod} to {action.to}"
