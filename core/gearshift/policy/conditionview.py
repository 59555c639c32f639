# SPDX-License-Identifier: Apache-2.0
"""Conditions of a service, one small function each with its truth table.

`Ready` says that requests are served as the spec asks; `Reconciling` that the operator is on its way to the spec;
`Stalled` that a human is needed. As kstatus reads them, the last two are never both true. Transitions that the policy
orders are not `Reconciling`: they are what a converged service does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from gearshift.api import conditions, reasons
from gearshift.api.conditions import Condition, ConditionStatus
from gearshift.api.v1alpha1.status import TransitionRecord
from gearshift.api.vocabulary import Role, TransitionKind
from gearshift.policy.fleet import Fleet
from gearshift.policy.history import moment
from gearshift.policy.override import active_override
from gearshift.policy.ownerview import held, scaling_active
from gearshift.policy.plan import CreatePod, DeletePod, Plan, Transit
from gearshift.policy.rolelayout import stray
from gearshift.policy.scale import asked
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.targets import total_target

Make = Callable[[ConditionStatus, str, str], Condition]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that stands in the way: for a human to remove, unless it is ``passing``.

    ``spec`` says that the spec is at fault.
    """

    reason: str
    message: str
    spec: bool = False
    passing: bool = False


def graver(*troubles: Trouble | None) -> Trouble | None:
    """The first fault of the spec; else the first thing that needs a human; else the first of them."""
    found = [trouble for trouble in troubles if trouble is not None]
    return min(found, key=lambda trouble: (not trouble.spec, trouble.passing), default=None)


@dataclass(frozen=True, slots=True)
class Observed:
    """State of what stands beside the pods."""

    router_available: bool
    trouble: Trouble | None = None


def conditions_of(
    snapshot: Snapshot, fleet: Fleet, plan: Plan, observed: Observed, running: TransitionRecord | None, *, grown: bool
) -> list[Condition]:
    """All conditions, each with the generation that they are about. ``grown``: every desired pod has served before.

    ``snapshot`` is as gathered; where scaling decides, the number of pods that conditions speak of is the plan's.
    """
    given, snapshot = snapshot, asked(snapshot, plan.pods)

    def make(kind: str) -> Make:
        return partial(_condition, kind, snapshot.generation, moment(snapshot.at))

    return [
        _ready(make(conditions.READY), snapshot, fleet, observed, grown=grown),
        _reconciling(make(conditions.RECONCILING), snapshot, fleet, plan, observed),
        _stalled(make(conditions.STALLED), observed.trouble),
        _spec_valid(make(conditions.SPEC_VALID), observed.trouble),
        _engines_ready(make(conditions.ENGINES_READY), snapshot, fleet),
        _layout_converged(make(conditions.LAYOUT_CONVERGED), snapshot, fleet, plan),
        _roles_converged(make(conditions.ROLES_CONVERGED), snapshot, fleet, plan),
        _metrics_available(make(conditions.METRICS_AVAILABLE), snapshot),
        _shifting(make(conditions.SHIFTING), snapshot, running),
        make(conditions.SCALING_ACTIVE)(*scaling_active(given)),
        make(conditions.HELD)(*held(given)),
    ]


def invalid_conditions(generation: int, reason: str, message: str, at: datetime) -> list[Condition]:
    """Conditions of a spec that can't be read: valid False, stalled True, not ready as the spec asks."""
    kinds: tuple[tuple[str, ConditionStatus], ...] = (
        (conditions.READY, "False"),
        (conditions.RECONCILING, "False"),
        (conditions.STALLED, "True"),
        (conditions.SPEC_VALID, "False"),
    )
    return [_condition(kind, generation, at, status, reason, message) for kind, status in kinds]


def _condition(
    kind: str, generation: int, at: datetime, status: ConditionStatus, reason: str, message: str
) -> Condition:
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message[:2048],
        observed_generation=generation,
        last_transition_time=at,
    )


def _ready(make: Make, snapshot: Snapshot, fleet: Fleet, observed: Observed, *, grown: bool) -> Condition:
    """
    | spec at fault | pods asked for | router | serving pods | grown before, or all desired pods serve | Ready |
    |---|---|---|---|---|---|
    | yes | | | | | False, its reason |
    | no | 0 | | | | True, ScaledToZero: that is what the spec asks for, and a parked service is healthy |
    | no | > 0 | absent | | | False, RouterStarting |
    | no | > 0 | there | none | | False, NoServingPods |
    | no | > 0 | there | a role is below its floor | | False, RoleUnserved |
    | no | > 0 | there | every role is at its floor | no | False, PodsStarting |
    | no | > 0 | there | every role is at its floor | yes | True, Serving |

    So a new service is not Ready before all its pods serve, and one that has grown once stays Ready through a lost pod,
    a rollout or a change of scale, as long as requests are served. `EnginesReady` tells whether all pods serve now.
    """
    if observed.trouble is not None and observed.trouble.spec:
        return make("False", observed.trouble.reason, observed.trouble.message)
    if total_target(snapshot.spec) == 0:
        return make("True", reasons.SCALED_TO_ZERO, "the spec asks for no pods")
    if not observed.router_available:
        return make("False", reasons.ROUTER_STARTING, "the router has no available pod")
    return _served(make, snapshot, fleet, grown=grown)


def _served(make: Make, snapshot: Snapshot, fleet: Fleet, *, grown: bool) -> Condition:
    """The rows of `_ready` in which there is a router."""
    if not fleet.serving:
        return make("False", reasons.NO_SERVING_PODS, f"0 of {len(fleet.live)} pods serve")
    short = [
        f"{role.name.value} {fleet.serving_roles.get(role.name, 0)}/{role.floor}"
        for role in snapshot.spec.roles
        if fleet.serving_roles.get(role.name, 0) < role.floor
    ]
    if short:
        return make("False", reasons.ROLE_UNSERVED, f"serving pods below the role's floor: {', '.join(short)}")
    if not (grown or complete(snapshot, fleet)):
        words = f"{len(fleet.serving)} of {total_target(snapshot.spec)} pods serve for the first time"
        return make("False", reasons.PODS_STARTING, words)
    return make("True", reasons.SERVING, "every role has the pods that it needs at least")


def complete(snapshot: Snapshot, fleet: Fleet) -> bool:
    """Every pod that the spec asks for serves, or does so again after the transition that it is in."""
    return len(fleet.live) >= total_target(snapshot.spec) and not _waiting(fleet)


def _waiting(fleet: Fleet) -> list[str]:
    return [pod.name for pod in fleet.live if not (pod.serving or pod.name in fleet.moving)]


def _reconciling(make: Make, snapshot: Snapshot, fleet: Fleet, plan: Plan, observed: Observed) -> Condition:
    """
    | trouble | plan creates or deletes | count of pods is off | outdated pods | router or pods start | Reconciling |
    |---|---|---|---|---|---|
    | for a human | | | | | False, its reason: `Stalled` is True |
    | passing | | | | | True, its reason |
    | no | | | yes | | True, RollingOut |
    | no | no: the budget is exhausted | yes | no | | True, BudgetExhausted |
    | no | yes | or yes | no | | True, Scaling |
    | no | no | no | no | yes | True, PodsStarting or RouterStarting |
    | no | no | no | no | no | False, UpToDate |
    """
    trouble = observed.trouble
    if trouble is not None:
        words = "nothing is done until the spec is corrected" if trouble.spec else trouble.message
        return make("True" if trouble.passing else "False", trouble.reason, words)
    if fleet.outdated:
        return make("True", reasons.ROLLING_OUT, f"{len(fleet.outdated)} pods are of an older spec")
    return _counted(make, snapshot, fleet, plan, observed)


def _counted(make: Make, snapshot: Snapshot, fleet: Fleet, plan: Plan, observed: Observed) -> Condition:
    """The rows of `_reconciling` in which nothing is in the way and every pod is of the present spec."""
    target = total_target(snapshot.spec)
    moves = any(isinstance(action, CreatePod | DeletePod) for action in plan.actions)
    if plan.hold is not None and plan.hold.reason == reasons.BUDGET_EXHAUSTED and len(fleet.live) < target:
        return make("True", reasons.BUDGET_EXHAUSTED, plan.hold.message)
    if moves or len(fleet.pods) != target:
        return make("True", reasons.SCALING, f"{len(fleet.live)} of {target} pods exist")
    starting = [pod.name for pod in fleet.live if not pod.ready and pod.name not in fleet.moving]
    if starting:
        return make("True", reasons.PODS_STARTING, f"not ready: {', '.join(starting[:8])}")
    if not observed.router_available:
        return make("True", reasons.ROUTER_STARTING, "the router has no available pod")
    return make("False", reasons.UP_TO_DATE, "pods and children are as the spec asks")


def _stalled(make: Make, trouble: Trouble | None) -> Condition:
    """True exactly when there is something that only a human can remove."""
    if trouble is None or trouble.passing:
        return make("False", reasons.PROGRESSING, "nothing stands in the way")
    return make("True", trouble.reason, trouble.message)


def _spec_valid(make: Make, trouble: Trouble | None) -> Condition:
    """False exactly when there is trouble and the spec is at fault."""
    if trouble is None or not trouble.spec:
        return make("True", reasons.ACCEPTED, "the spec can be served")
    return make("False", trouble.reason, trouble.message)


def _engines_ready(make: Make, snapshot: Snapshot, fleet: Fleet) -> Condition:
    """
    | pods asked for | live pods | ready, or in a transition | EnginesReady |
    |---|---|---|---|
    | n | fewer than n | | False, PodsMissing |
    | n | n or more | fewer than all | False, PodsStarting |
    | n | n or more | all | True, PodsServing |
    """
    target = total_target(snapshot.spec)
    if len(fleet.live) < target:
        return make("False", reasons.PODS_MISSING, f"{len(fleet.live)} of {target} pods exist")
    waiting = _waiting(fleet)
    if waiting:
        return make("False", reasons.PODS_STARTING, f"not serving: {', '.join(waiting[:8])}")
    return make("True", reasons.PODS_SERVING, f"{len(fleet.live)} pods serve")


def _layout_converged(make: Make, snapshot: Snapshot, fleet: Fleet, plan: Plan) -> Condition:
    """False while a layout is not allowed, or a change of layout runs, is about to, or waits for approval."""
    allowed = snapshot.spec.parallelism.layouts
    strays = [pod.name for pod in fleet.live if pod.layout not in allowed]
    if strays:
        return make("False", reasons.DIVERGED, f"layout is not one of parallelism.layouts: {', '.join(strays[:8])}")
    override = active_override(snapshot)
    strays = [pod.name for pod in fleet.live if stray(snapshot.spec, pod)]
    if strays and (override is None or override.layout is None):
        return make("False", reasons.DIVERGED, f"layout is not that of the role: {', '.join(strays[:8])}")
    return _converged(make, snapshot, plan, TransitionKind.LAYOUT, "layouts are what the policy wants")


def _roles_converged(make: Make, snapshot: Snapshot, fleet: Fleet, plan: Plan) -> Condition:
    """False while pods have roles that the spec does not list, or a change of role runs, is about to, or waits."""
    listed = {role.name for role in snapshot.spec.roles}
    strays = [pod.name for pod in fleet.live if pod.role not in listed]
    if strays:
        return make("False", reasons.DIVERGED, f"role is not one of roles: {', '.join(strays[:8])}")
    return _converged(make, snapshot, plan, TransitionKind.ROLE, "roles are what the policy wants")


def _converged(make: Make, snapshot: Snapshot, plan: Plan, kind: TransitionKind, fine: str) -> Condition:
    running = {flight.pod: flight.to for flight in snapshot.in_flight if flight.kind is kind}
    running |= {act.pod: act.to for act in plan.actions if isinstance(act, Transit) and act.kind is kind}
    if running:
        moves = ", ".join(f"{pod} to {to}" for pod, to in sorted(running.items())[:8])
        return make("False", reasons.TRANSITION_IN_FLIGHT, moves)
    wanted = [act for act in plan.proposal if isinstance(act, Transit) and act.kind is kind]
    if wanted and plan.hold is not None and plan.hold.reason in (reasons.AWAITING_APPROVAL, reasons.APPROVAL_EXPIRED):
        moves = ", ".join(f"{act.pod} to {act.to}" for act in wanted[:8])
        return make("False", plan.hold.reason, f"plan {plan.id}: {moves}")
    return make("True", reasons.CONVERGED, fine)


def _metrics_available(make: Make, snapshot: Snapshot) -> Condition:
    """Unknown when none was asked for; False when one of them is unknown; else True.

    The message names signals and roles but no ages or causes that differ at every look.
    """
    readings = snapshot.metrics.readings
    if not readings:
        return make("Unknown", reasons.METRICS_NOT_READ, "no metrics were asked for")
    missing = sorted(_label(key) for key, reading in readings.items() if reading.value is None and not reading.quiet)
    if missing:
        return make("False", reasons.METRICS_MISSING, f"unknown: {', '.join(missing)}")
    return make("True", reasons.METRICS_FRESH, f"{len(readings)} signals are known")


def _label(key: tuple[str, Role | None]) -> str:
    signal, role = key
    return f"{signal}" if role is None else f"{signal} of {role.value}"


def _shifting(make: Make, snapshot: Snapshot, running: TransitionRecord | None) -> Condition:
    """True while a transition runs."""
    if running is not None:
        return make("True", reasons.TRANSITION_IN_FLIGHT, f"{running.kind.value} of {running.pod} to {running.to}")
    if snapshot.in_flight:
        flight = snapshot.in_flight[0]
        return make("True", reasons.TRANSITION_IN_FLIGHT, f"{flight.kind.value} of {flight.pod} to {flight.to}")
    return make("False", reasons.QUIET, "no transition runs")
