# SPDX-License-Identifier: Apache-2.0
"""A human's order on layout or role wins over the policy until it expires."""

from datetime import UTC, datetime

from gearshift.api import reasons
from gearshift.api.v1alpha1 import Override
from gearshift.api.vocabulary import Role, TransitionKind
from gearshift.policy.fleet import Fleet
from gearshift.policy.layout import not_capable, towards
from gearshift.policy.plan import Hold, Memory, Transit
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.verdict import Source, Verdict, by_rest


def active_override(snapshot: Snapshot) -> Override | None:
    """The override of the spec while it lasts. A time without zone is UTC."""
    override = snapshot.spec.override
    return override if override is not None and snapshot.at < _seconds(override.until) else None


def _seconds(until: datetime) -> float:
    return (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp()


def override_verdict(override: Override, memory: Memory, fleet: Fleet) -> Verdict:
    """Transitions that the order asks for.

    | order | serving pods | result |
    |---|---|---|
    | layout L | some with another layout, able to switch | one transition each |
    | layout L | some with another layout, none able | Hold NotCapable |
    | role R | some in another role | one transition each; guards keep the other roles' floors and R's ceiling |
    | any | all as ordered | Hold Override |
    """
    if override.layout is not None:
        candidates = towards(override.layout, fleet, memory, reasons.OVERRIDE)
        others = any(pod.layout is not override.layout for pod in fleet.serving)
        idle = not_capable(override.layout, fleet) if others else _obeyed(override)
    else:
        assert override.role is not None
        candidates, idle = _to_role(override.role, memory, fleet), _obeyed(override)
    message = f"spec.override orders {override.layout or override.role}"
    return Verdict(candidates, None if candidates else idle, {}, None, message, Source.OVERRIDE)


def _obeyed(override: Override) -> Hold:
    return Hold(reasons.OVERRIDE, f"{override.layout or override.role} as spec.override orders")


def _to_role(role: Role, memory: Memory, fleet: Fleet) -> tuple[Transit, ...]:
    pods = [pod for pod in fleet.serving if pod.role is not role]
    return tuple(
        Transit(pod.name, TransitionKind.ROLE, role.value, pod.epoch, reasons.OVERRIDE) for pod in by_rest(pods, memory)
    )
