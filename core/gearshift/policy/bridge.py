# SPDX-License-Identifier: Apache-2.0
"""Bridges: a warm pod of another role stands in for a pod that starts, and goes back once that one serves.

A pod takes a minute or more to load its weights, a change of role seconds. So a role that is hot while a pod of it
starts borrows a pod of the other role for that time, at once, on pressure alone; the pod that comes is reason enough
to give it back.
"""

from collections.abc import Iterator
from dataclasses import replace

from gearshift.api import reasons
from gearshift.api.v1alpha1.status import MAX_BRIDGES, BridgeStatus, InferenceServiceStatus
from gearshift.api.vocabulary import BridgePhase, PodPhase, Role, TransitionKind
from gearshift.policy import tuning
from gearshift.policy.fleet import Fleet
from gearshift.policy.moves import usual_seconds
from gearshift.policy.override import active_override
from gearshift.policy.plan import Bridge, BridgeWish, Hold, Memory, Plan, Transit
from gearshift.policy.pressure import Pressure, decode_pressure, known, prefill_pressure
from gearshift.policy.role import carries, flips
from gearshift.policy.snapshot import PodView, Signal, Snapshot
from gearshift.policy.startup import expected_seconds
from gearshift.policy.verdict import STEADY, Source, Verdict, number

_PRESSURE = {Role.PREFILL: prefill_pressure, Role.DECODE: decode_pressure}
_OTHER = {Role.PREFILL: Role.DECODE, Role.DECODE: Role.PREFILL}


def cold(pod: PodView) -> bool:
    """The pod loads its engine: it will serve, and does not yet."""
    return pod.phase is PodPhase.STARTING and not pod.ready


def wish(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> BridgeWish | Hold:
    """Bridge that is wanted now, of role h to a starting pod of it; d is the other of Prefill and Decode.

    With p their pressures, n their serving pods, d' = p_d * n_d / (n_d - 1):

    | a pod of h starts, and will for long enough | p_h | n_d | d' | demand on d fits n_d - 1 pods | bridge |
    |---|---|---|---|---|---|
    | no, or it has had its bridge, or a pod is on its way to h | any | any | any | any | none |
    | yes | < 0.9, or no pod of h serves and nothing runs on d | any | any | any | none: objectives hold |
    | yes | >= 0.9, or no pod of h serves | 1 | any | any | none: d would be gone |
    | yes | >= 0.9, or no pod of h serves | more | > 0.75 | any | none: d has no slack |
    | yes | >= 0.9, or no pod of h serves | more | <= 0.75 | no | none: KnownCapacity |
    | yes | >= 0.9, or no pod of h serves | more | <= 0.75 | yes, or unknown | a pod of d to h |
    | yes | unknown | any | unknown | any | Hold MetricsMissing |

    Long enough: what is left of the usual start-up is 15 s and four times a change of role.
    """
    override = active_override(snapshot)
    if not snapshot.spec.disaggregated or (override is not None and override.role is not None):
        return STEADY
    found: Hold = STEADY
    for receiver in (Role.PREFILL, Role.DECODE):
        awaited = _awaited(snapshot, memory, fleet, receiver)
        if awaited is None:
            continue
        why = _lent(snapshot, memory, fleet, receiver)
        if not isinstance(why, Hold):
            return BridgeWish(snapshot.at, _OTHER[receiver], receiver, awaited.uid, f"{why}; {awaited.name} starts")
        found = why if found is STEADY else found
    return found


def _awaited(snapshot: Snapshot, memory: Memory, fleet: Fleet, role: Role) -> PodView | None:
    """The pod of a role that needs a bridge the longest, if one does and none is on its way."""
    if any(each.kind is TransitionKind.ROLE and each.to == role for each in snapshot.in_flight):
        return None
    bridged = {bridge.awaits_uid for bridge in memory.bridges}
    fresh = [pod for pod in fleet.live if pod.role is role and cold(pod) and pod.revision == snapshot.revision]
    least = _least(snapshot)
    due = [pod for pod in fresh if pod.uid not in bridged and _left(snapshot, memory, pod) >= least]
    return max(due, key=lambda pod: (_began(pod), -pod.ordinal), default=None)


def _left(snapshot: Snapshot, memory: Memory, pod: PodView) -> float:
    """Seconds until a starting pod serves, as past ones took."""
    expected = expected_seconds(memory, snapshot.revision)
    return (tuning.STARTUP_SECONDS if expected is None else expected) - (snapshot.at - _began(pod))


def _began(pod: PodView) -> float:
    return max(pod.since, pod.created_at)


def _least(snapshot: Snapshot) -> float:
    """Seconds for which a bridge pays: it costs a change there and one back."""
    took = usual_seconds(snapshot, TransitionKind.ROLE)
    return max(tuning.BRIDGE_LEAST_SECONDS, tuning.BRIDGE_COSTS * (took or 0.0))


def _lent(snapshot: Snapshot, memory: Memory, fleet: Fleet, receiver: Role) -> str | Hold:
    """Why the other role should lend a pod to ``receiver``, in words; or what keeps it from that."""
    donor = _OTHER[receiver]
    hot = _heat(snapshot, fleet, receiver)
    if isinstance(hot, Hold) or hot < tuning.HOT:
        return hot if isinstance(hot, Hold) else STEADY
    donors = fleet.serving_roles.get(donor, 0)
    if donors < 2:
        return STEADY
    cool = _PRESSURE[donor](snapshot, fleet)
    if isinstance(cool, Hold):
        return cool
    if cool.value * donors / (donors - 1) > tuning.BRIDGE_SLACK:
        return STEADY
    words = f"pressure {number(hot)} on {receiver}, {number(cool.value)} on {donor}"
    return carries(snapshot, memory, fleet, donor) or words


def _heat(snapshot: Snapshot, fleet: Fleet, role: Role) -> float | Hold:
    """Pressure of a role; where no pod of it serves, the most as soon as the other role serves requests for both."""
    if not fleet.serving_roles.get(role):
        runs = known(snapshot.metrics, (Signal.RUNNING,), _OTHER[role])
        return runs if isinstance(runs, Hold) else tuning.PRESSURE_CAP * (runs[Signal.RUNNING] > 0)
    found: Pressure | Hold = _PRESSURE[role](snapshot, fleet)
    return found if isinstance(found, Hold) else found.value


def bridge_verdict(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Verdict:
    """Transitions that end a bridge, else those that make one.

    | bridge | the pod that it awaits | pressure of its role without the bridge | result |
    |---|---|---|---|
    | stands | starts | any | stays |
    | stands | serves | < 0.9 | back |
    | stands | serves | >= 0.9 | stays: the role needs both |
    | stands | serves | unknown | Hold MetricsMissing |
    """
    held: Hold = STEADY
    for bridge in memory.bridges:
        found = _back(bridge, snapshot, fleet)
        if isinstance(found, Transit):
            message = f"{bridge.awaits} serves, so {bridge.pod} goes back to {bridge.from_}"
            return Verdict((found,), None, {}, None, message, Source.BRIDGE)
        held = found if held is STEADY else held
    wanted = wish(snapshot, memory, fleet)
    if isinstance(wanted, Hold):
        return Verdict(hold=wanted if held is STEADY else held)
    candidates = flips(wanted.donor, wanted.receiver, _without(fleet, memory), memory, reasons.BRIDGE)
    return Verdict(candidates, None if candidates else STEADY, {}, None, wanted.why)


def _without(fleet: Fleet, memory: Memory) -> Fleet:
    """The fleet without the pods that are bridges: a bridge of one pod is none of another."""
    bridges = {bridge.uid for bridge in memory.bridges if bridge.phase is not BridgePhase.RETURNED}
    return replace(fleet, serving=tuple(pod for pod in fleet.serving if pod.uid not in bridges))


def _back(bridge: Bridge, snapshot: Snapshot, fleet: Fleet) -> Transit | Hold:
    pod = next((pod for pod in fleet.serving if pod.uid == bridge.uid), None)
    arrived = any(pod.uid == bridge.awaits_uid for pod in fleet.serving)
    if pod is None or not arrived or bridge.phase is not BridgePhase.STANDING:
        return STEADY
    pressure = _PRESSURE[bridge.to](snapshot, fleet)
    if isinstance(pressure, Hold):
        return pressure
    serving = fleet.serving_roles[bridge.to]
    if pressure.value * serving / max(1, serving - 1) >= tuning.HOT:
        return STEADY
    return Transit(pod.name, TransitionKind.ROLE, bridge.from_.value, pod.epoch, reasons.BRIDGE_OVER)


def bridges(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> tuple[Bridge, ...]:
    """Bridges after this snapshot.

    | bridge | its pod | the pod that it awaits | after |
    |---|---|---|---|
    | wanted lately | goes, or has gone, to the role in question | starts, or serves since | going or standing |
    | going | serves in its old role: rolled back | any | none; another may be made |
    | going, standing | serves in the role in question | starts | standing |
    | standing | serves in the role in question | serves for less than 10 windows | standing |
    | standing | serves in the role in question | serves for longer, or is gone | none: the pod is of that role now |
    | standing | serves in its old role | starts | returned: no second one for the same pod |
    | returned | any | serves, or is gone | none |
    | any | gone, or of a third role | any | none |
    | any | any, while an override orders a role | any | none: a human says what pods are |
    """
    override = active_override(snapshot)
    if override is not None and override.role is not None:
        return ()
    known = [after for bridge in memory.bridges if (after := _after(bridge, snapshot, fleet)) is not None]
    return (*known, *_begun(snapshot, memory, fleet))


def _after(bridge: Bridge, snapshot: Snapshot, fleet: Fleet) -> Bridge | None:
    live = {pod.uid: pod for pod in fleet.live}
    pod, awaited = live.get(bridge.uid), live.get(bridge.awaits_uid)
    if pod is None or awaited is None or awaited.role is not bridge.to:
        return None
    if bridge.phase is BridgePhase.RETURNED:
        return bridge if cold(awaited) else None
    if not pod.serving or pod.name in fleet.moving:
        return bridge
    if pod.role is bridge.from_:
        gone_back = bridge.phase is BridgePhase.STANDING and cold(awaited)
        return replace(bridge, phase=BridgePhase.RETURNED) if gone_back else None
    if pod.role is not bridge.to:
        return None
    return _standing(bridge, awaited, snapshot)


def _standing(bridge: Bridge, awaited: PodView, snapshot: Snapshot) -> Bridge | None:
    served_at = bridge.served_at
    if served_at is None and awaited.serving:
        served_at = snapshot.at
    if served_at is not None and snapshot.at - served_at > tuning.BRIDGE_WINDOWS * snapshot.spec.policy.window.seconds:
        return None
    return replace(bridge, phase=BridgePhase.STANDING, served_at=served_at)


def _begun(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Iterator[Bridge]:
    """The bridge that was wanted lately, once a pod is on its way or there."""
    wanted = memory.bridge_wish
    if wanted is None or any(bridge.awaits_uid == wanted.awaits_uid for bridge in memory.bridges):
        return
    awaited = next((pod for pod in fleet.live if pod.uid == wanted.awaits_uid), None)
    if awaited is None or awaited.role is not wanted.receiver:
        return
    bound = {each.pod for each in snapshot.in_flight if each.kind is TransitionKind.ROLE and each.to == wanted.receiver}
    for pod in fleet.live:
        was = memory.seen.get(pod.uid)
        there = pod.serving and pod.role is wanted.receiver
        if wanted.donor not in (pod.role, was and was.role) or not (there or pod.name in bound):
            continue
        phase = BridgePhase.STANDING if there and pod.name not in bound else BridgePhase.GOING
        served_at = snapshot.at if awaited.serving and phase is BridgePhase.STANDING else None
        yield Bridge(pod.name, pod.uid, wanted.donor, wanted.receiver, awaited.name, awaited.uid, phase, served_at)
        return


def remembered_wish(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> BridgeWish | None:
    """The bridge that is wanted now, else the one wanted lately, for a window: orders take a moment to show.

    ``memory`` holds the bridges after this snapshot.
    """
    now = wish(snapshot, memory, fleet)
    if isinstance(now, BridgeWish):
        return now
    before = memory.bridge_wish
    if before is None or snapshot.at - before.at > snapshot.spec.policy.window.seconds:
        return None
    return None if any(bridge.awaits_uid == before.awaits_uid for bridge in memory.bridges) else before


def bridge_status(memory: Memory, plan: Plan, fleet: Fleet) -> list[BridgeStatus]:
    """What status tells of bridges, the one that ``plan`` orders included."""
    return [
        BridgeStatus(
            pod=each.pod, uid=each.uid, from_=each.from_, to=each.to, awaits=each.awaits, awaits_uid=each.awaits_uid,
            phase=each.phase,
        )
        for each in (*memory.bridges, *_ordered(memory, plan, fleet))[:MAX_BRIDGES]
    ]  # fmt: skip


def _ordered(memory: Memory, plan: Plan, fleet: Fleet) -> Iterator[Bridge]:
    """The bridge that is ordered now: an operator that dies before the order shows must not forget it."""
    live, wanted = {pod.name: pod for pod in fleet.live}, memory.bridge_wish
    for action in plan.actions:
        if wanted is None or not isinstance(action, Transit) or action.reason != reasons.BRIDGE:
            continue
        awaited = next((pod.name for pod in fleet.live if pod.uid == wanted.awaits_uid), "")
        uid = live[action.pod].uid
        yield Bridge(action.pod, uid, wanted.donor, wanted.receiver, awaited, wanted.awaits_uid, BridgePhase.GOING)


def remembered_bridges(told: InferenceServiceStatus) -> tuple[Bridge, ...]:
    """The bridges that a status tells of."""
    return tuple(
        Bridge(each.pod, each.uid, each.from_, each.to, each.awaits, each.awaits_uid, each.phase)
        for each in told.bridges
    )
