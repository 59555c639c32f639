# SPDX-License-Identifier: Apache-2.0
"""The arbiter: one plan from one snapshot, at most one disruptive action in it.

Order: repair and scale up, rollout, flip, shift, scale down. The first that may act is the plan. What may not act is
told by the first of them that wanted something, with what kept it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gearshift.api import reasons
from gearshift.api.vocabulary import Actuation
from gearshift.policy import guards, scale
from gearshift.policy.approval import in_force, waiting
from gearshift.policy.budget import room, within
from gearshift.policy.fleet import Fleet, covers
from gearshift.policy.identity import plan_id
from gearshift.policy.layout import layout_verdict
from gearshift.policy.override import active_override, override_verdict
from gearshift.policy.plan import Action, DeletePod, Hold, Memory, Plan, Transit
from gearshift.policy.repair import repair
from gearshift.policy.rolelayout import role_layout_verdict
from gearshift.policy.roles import roles_verdicts
from gearshift.policy.rollout import rollout
from gearshift.policy.scaledown import scale_down
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.targets import total_target
from gearshift.policy.threshold import threshold_verdict
from gearshift.policy.verdict import Source, Verdict


def decide(snapshot: Snapshot, memory: Memory) -> Plan:
    """Plan of this tick. Pure: the same snapshot and memory give the same plan, whatever the order of the pods.

    ``memory`` is `gearshift.policy.memory.fold` of the same snapshot.
    """
    snapshot = in_force(snapshot, memory)
    fleet = Fleet.of(snapshot)
    pods = scale.pods(snapshot, memory, fleet)
    plan = _decide(scale.asked(snapshot, pods), memory, fleet)
    if not plan.actions and not plan.proposal:
        plan = _scale_proposal(snapshot, memory, fleet, pods) or plan
    bounded = room(snapshot, fleet)
    if pods is not None and bounded is not None:
        pods = min(pods, len(fleet.pods) + bounded.pods)
    return replace(plan, pods=pods, inputs={**plan.inputs, **scale.inputs(memory)} if pods is not None else plan.inputs)


def _scale_proposal(snapshot: Snapshot, memory: Memory, fleet: Fleet, pods: int | None) -> Plan | None:
    """What scaling would do, where actuation keeps it from acting.

    | wanted pods | actuation | hold annotation | result |
    |---|---|---|---|
    | as they are | any | any | none |
    | other | Auto | no | none: they are desired already |
    | other | any | set | HumanHold |
    | other | Approve | no | AwaitingApproval with the plan's id |
    | other | Advisory | no | Advisory |
    """
    actuation = snapshot.spec.policy.actuation
    wanted = memory.scale.wanted if memory.scale is not None else None
    if pods is None or wanted is None or wanted == pods or (actuation is Actuation.AUTO and not snapshot.hold):
        return None
    asked = scale.asked(replace(snapshot, hold=False), wanted)
    found = repair(asked, fleet) or _scale_down(asked, memory, fleet)
    if isinstance(found, Hold) or not found:
        return None
    why = f"{wanted} pods instead of {pods}"
    if snapshot.hold:
        hold = Hold(reasons.HUMAN_HOLD, f"{guards.held(snapshot)}; {why}")
    elif actuation is Actuation.ADVISORY:
        hold = Hold(reasons.ADVISORY, why)
    else:
        hold = waiting(snapshot, memory, plan_id(snapshot.uid, found, fleet), why)
    return _held(snapshot, fleet, hold, found, _counts(asked, fleet))


def _decide(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Plan:
    """Plan for a snapshot whose spec asks for the pods that scaling desires."""
    mended, short = within(snapshot, fleet, repair(snapshot, fleet))
    if mended:
        return _act(snapshot, fleet, mended, _counts(snapshot, fleet))
    rolled = _rollout(snapshot, fleet)
    if isinstance(rolled, tuple):
        return _act(snapshot, fleet, rolled, _counts(snapshot, fleet))
    moved = _transition(snapshot, memory, fleet)
    if moved.actions:
        return moved
    shrunk = _scale_down(snapshot, memory, fleet)
    if isinstance(shrunk, tuple) and shrunk:
        return _act(snapshot, fleet, shrunk, _counts(snapshot, fleet))
    for hold in (rolled, shrunk, short):
        if isinstance(hold, Hold) and not moved.proposal:
            return _held(snapshot, fleet, hold, (), moved.inputs)
    return moved


def _rollout(snapshot: Snapshot, fleet: Fleet) -> tuple[DeletePod, ...] | Hold | None:
    rolled = rollout(fleet)
    if isinstance(rolled, tuple) and snapshot.hold:
        return Hold(reasons.HUMAN_HOLD, f"{guards.held(snapshot)}; {len(fleet.outdated)} pods of an older spec remain")
    return rolled


def _scale_down(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> tuple[DeletePod, ...] | Hold:
    doomed = scale_down(snapshot, fleet)
    if not doomed:
        return ()
    if snapshot.hold:
        return Hold(reasons.HUMAN_HOLD, f"{guards.held(snapshot)}; {doomed[0].name} is above the target and remains")
    gone = {pod.name for pod in doomed}
    left = covers(pod.role for pod in fleet.serving if pod.name not in gone)
    if len(fleet.live) > len(doomed) and covers(fleet.serving_roles) and not left:
        return Hold(reasons.CAPACITY_KEPT, f"without {doomed[0].name} no whole request could be served")
    return guards.restart_veto(snapshot, memory) or doomed


def _transition(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Plan:
    """The first wish for a transition that no guard vetoes, as actuation has it; else why the first one can't be."""
    context = guards.Context.of(snapshot, memory, fleet)
    verdicts = [*_verdicts(snapshot, memory, fleet), *_ordered_by_spec(snapshot, memory, fleet)]
    inputs = _merged(verdicts)
    held: list[Plan] = []
    for verdict in verdicts:
        transit, hold = _admitted(context, verdict)
        if transit is not None and hold is None:
            return _actuate(context, transit, verdict, inputs)
        if hold is not None and hold.reason != reasons.STEADY:
            proposal = () if transit is None else (transit,)
            held.append(_held(snapshot, fleet, hold, proposal, inputs))
    steady = _held(snapshot, fleet, Hold(reasons.STEADY, "nothing is to be done"), (), inputs)
    return next((plan for plan in held if plan.proposal), next(iter(held), steady))


def _verdicts(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> list[Verdict]:
    """Role before layout; an override takes the place of the decision that it concerns."""
    override = active_override(snapshot)
    ordered = None if override is None else override_verdict(override, memory, fleet)
    if override is not None and ordered is not None and override.role is not None:
        return [ordered, layout_verdict(snapshot, memory, fleet)]
    if ordered is not None:
        return [ordered, *roles_verdicts(snapshot, memory, fleet)]
    return [*roles_verdicts(snapshot, memory, fleet), layout_verdict(snapshot, memory, fleet)]


def _ordered_by_spec(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> list[Verdict]:
    """What settings of the spec ask of running pods; a human's order on the layout wins over the roles' layouts."""
    threshold = threshold_verdict(snapshot, memory, fleet)
    override = active_override(snapshot)
    if override is not None and override.layout is not None:
        return [threshold]
    return [role_layout_verdict(snapshot, memory, fleet), threshold]


def _admitted(context: guards.Context, verdict: Verdict) -> tuple[Transit | None, Hold | None]:
    """The first candidate without a veto; else the first candidate and its veto; else the verdict's own hold."""
    short = _short_evidence(context, verdict)
    if not verdict.candidates or short is not None:
        return None, short or verdict.hold
    first: Hold | None = None
    for transit in verdict.candidates:
        hold = guards.veto(context, transit, verdict.source)
        if hold is None:
            return transit, None
        first = first or hold
    return verdict.candidates[0], first


def _short_evidence(context: guards.Context, verdict: Verdict) -> Hold | None:
    if not verdict.candidates or verdict.evidence is None:
        return None
    at = context.snapshot.at
    due = verdict.windows * context.snapshot.spec.policy.window.seconds
    lasted = at - context.memory.evidence_since.get(verdict.evidence, at)
    if lasted >= due:
        return None
    return Hold(reasons.EVIDENCE_SHORT, f"{verdict.evidence} wanted for {lasted:.0f} s, {due:.0f} s are due")


def _actuate(context: guards.Context, transit: Transit, verdict: Verdict, inputs: Mapping[str, str]) -> Plan:
    """What becomes of an admitted transition.

    | source | actuation | approved | acts |
    |---|---|---|---|
    | Override | any | any | yes: a human ordered it |
    | Spec | any | any | yes: it carries out a field of the spec, as a rollout does |
    | other | Auto | any | yes |
    | other | Approve | this plan's id | yes |
    | other | Approve | this plan's id, expired | no: ApprovalExpired |
    | other | Approve | else | no: AwaitingApproval |
    | other | Advisory | any | no: Advisory |
    """
    snapshot, fleet = context.snapshot, context.fleet
    actuation = snapshot.spec.policy.actuation
    ident = plan_id(snapshot.uid, (transit,), fleet)
    approved = actuation is Actuation.APPROVE and snapshot.approved == ident
    if verdict.source in (Source.OVERRIDE, Source.SPEC) or actuation is Actuation.AUTO or approved:
        return Plan(ident, (transit,), reason=transit.reason, message=verdict.message, inputs=inputs)
    if actuation is Actuation.ADVISORY:
        hold = Hold(reasons.ADVISORY, f"{transit.reason}: {verdict.message}")
    else:
        hold = waiting(snapshot, context.memory, ident, f"{transit.reason}: {verdict.message}")
    return _held(snapshot, fleet, hold, (transit,), inputs)


def _act(snapshot: Snapshot, fleet: Fleet, actions: tuple[Action, ...], inputs: Mapping[str, str]) -> Plan:
    ident = plan_id(snapshot.uid, actions, fleet)
    return Plan(ident, actions, reason=actions[0].reason, message=inputs["pods"], inputs=inputs)


def _held(
    snapshot: Snapshot, fleet: Fleet, hold: Hold, proposal: tuple[Action, ...], inputs: Mapping[str, str]
) -> Plan:
    ident = plan_id(snapshot.uid, proposal, fleet)
    return Plan(ident, (), proposal, hold, hold.reason, hold.message, inputs)


def _counts(snapshot: Snapshot, fleet: Fleet) -> dict[str, str]:
    target = total_target(snapshot.spec)
    pods = f"{len(fleet.live)} live, {len(fleet.serving)} serving, {len(fleet.outdated)} outdated, target {target}"
    return {"pods": pods}


def _merged(verdicts: Iterable[Verdict]) -> dict[str, str]:
    return {name: value for verdict in verdicts for name, value in verdict.inputs.items()}
