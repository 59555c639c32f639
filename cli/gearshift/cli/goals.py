# SPDX-License-Identifier: Apache-2.0
"""When an order or an approved plan is done, and when it has failed: judged from the service alone."""

from collections.abc import Iterable
from dataclasses import dataclass

from gearshift.api import conditions, reasons
from gearshift.api.v1alpha1.status import TransitionRecord
from gearshift.api.vocabulary import Layout, Role, TransitionKind, TransitionResult
from gearshift.cli.errors import RefusedError
from gearshift.cli.historypage import outcome_words
from gearshift.cli.service import Json, Service
from gearshift.cli.words import transition_words, why
from gearshift.policy.targets import ceiling

_BAD = (TransitionResult.FAILED, TransitionResult.ROLLED_BACK)


@dataclass(frozen=True, slots=True)
class OrderGoal:
    """Every pod is as ``spec.override`` orders.

    ``generation`` is that of the spec with the order; ``seen`` are keys of the transitions that ended before it.
    """

    uid: str
    generation: int
    override: Json
    seen: frozenset[str]

    def reached(self, service: Service) -> bool:
        """Whether it is done.

        Raises:
            RefusedError: it can't come true any more; says why.
        """
        same_object(service, self.uid)
        if service.body["spec"].get("override") != self.override:
            raise RefusedError(f"{service.where}: spec.override has been changed or dropped meanwhile")
        kind = TransitionKind.LAYOUT if "layout" in self.override else TransitionKind.ROLE
        to = self.override.get("layout") or self.override["role"]
        history = service.status.transition_history
        check(service, (each for each in history if (each.kind, each.to) == (kind, to) and key(each) not in self.seen))
        if service.status.observed_generation < self.generation or service.status.transition is not None:
            return False
        return _has_layout(service, Layout(to)) if kind is TransitionKind.LAYOUT else _has_role(service, Role(to))


@dataclass(frozen=True, slots=True)
class PlanGoal:
    """An approved plan has been carried out: its transition is committed, or the pods that it makes or ends are."""

    uid: str
    plan: str
    seen: frozenset[str]  # as in `OrderGoal`

    def reached(self, service: Service) -> bool:
        """Whether it is done.

        Raises:
            RefusedError: its transition failed; says why.
        """
        same_object(service, self.uid)
        status = service.status
        own = carried_out(service, self.plan, self.seen)
        check(service, own)
        if own:
            return True
        decision, moving = status.last_decision, service.condition(conditions.RECONCILING)
        acting = decision is not None and decision.plan == self.plan
        busy = status.transition is not None or (moving is not None and moving.status == "True")
        return not acting and not busy


def key(record: TransitionRecord) -> str:
    """Tells a transition from an earlier try of the same plan on the same pod, which has the same id."""
    return f"{record.id} {record.started_at.isoformat()}"


def ended(service: Service) -> frozenset[str]:
    """Keys of the transitions that have ended."""
    return frozenset(key(record) for record in service.status.transition_history)


def carried_out(service: Service, plan: str, seen: frozenset[str]) -> list[TransitionRecord]:
    """Transitions of a plan that have ended since."""
    history = service.status.transition_history
    return [each for each in history if each.id.startswith(f"{plan}-") and key(each) not in seen]


def same_object(service: Service, uid: str) -> None:
    """Refuse a namesake of the service that was ordered something."""
    if service.uid != uid:
        raise RefusedError(f"{service.where} has been deleted and made anew meanwhile")


def check(service: Service, ended: Iterable[TransitionRecord]) -> None:
    """Refuse when a transition went wrong."""
    for record in ended:
        if record.result in _BAD:
            words = f"{transition_words(record)}: {record.result.value}: {outcome_words(record)}"
            raise RefusedError(f"{service.where}: {words}")


def waits_for(service: Service) -> str | None:
    """What holds the service back, or None."""
    decision = service.status.last_decision
    if decision is None or decision.action != "Hold" or decision.reason in (reasons.STEADY, reasons.OVERRIDE):
        return None
    return why(decision)


def _has_layout(service: Service, layout: Layout) -> bool:
    summary = service.status.pod_summary
    if summary is not None:
        return summary.by_layout.get(layout, 0) == summary.total
    return all(pod.layout is layout for pod in service.status.pods)


def _has_role(service: Service, role: Role) -> bool:
    """All pods above the other roles' floors, and below the ceiling of this one, serve in it."""
    bounds = {each.name: each for each in service.roles}
    roles = {each.name: each for each in service.status.roles}
    if any(each.ready < each.desired for each in roles.values()) or role not in roles:
        return False
    full = role in bounds and roles[role].desired >= ceiling(bounds[role], service.status.replicas)
    others = [each for each in roles.values() if each.name is not role]
    return full or all(each.desired <= bounds[each.name].floor for each in others if each.name in bounds)
