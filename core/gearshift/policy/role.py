# SPDX-License-Identifier: Apache-2.0
"""Which pods prefill and which decode."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gearshift.api import reasons
from gearshift.api.vocabulary import Layout, Role, TransitionKind
from gearshift.policy import tuning
from gearshift.policy.capacity import rate_per_pod, remembered
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Hold, Memory, Transit
from gearshift.policy.pressure import Pressure, decode_pressure, prefill_pressure
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.verdict import STEADY, Verdict, by_rest, number


@dataclass(frozen=True, slots=True)
class Want:
    """A pod of ``donor`` should serve as ``receiver``; or ``hold`` says why not."""

    donor: Role | None = None
    receiver: Role | None = None
    reason: str = ""
    message: str = ""
    hold: Hold | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)


def want(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Want:
    """Flip by pressure.

    With h the role under more pressure, d the other, n their serving pods, p their pressures,
    d' = p_d * n_d / (n_d - 1) and h' = p_h * n_h / (n_h + 1) are the pressures after a flip:

    | p_h | d' <= 0.85 h' | demand on d fits what n_d - 1 pods were seen to carry | flip |
    |---|---|---|---|
    | < 0.9 | any | any | none: objectives hold |
    | >= 0.9 | no | any | none: d would be the worse one |
    | >= 0.9 | yes | no | none: KnownCapacity |
    | >= 0.9 | yes | yes, or nothing was seen | d to h |
    | unknown | any | any | Hold MetricsMissing |
    """
    prefill, decode = prefill_pressure(snapshot, fleet), decode_pressure(snapshot, fleet)
    if isinstance(prefill, Hold):
        return Want(hold=prefill)
    if isinstance(decode, Hold):
        return Want(hold=decode)
    context = _Context(snapshot, memory, fleet, {**prefill.inputs, **decode.inputs})
    if prefill.value >= decode.value:
        return _flip(context, (Role.DECODE, Role.PREFILL), (prefill, decode))
    return _flip(context, (Role.PREFILL, Role.DECODE), (decode, prefill))


@dataclass(frozen=True, slots=True)
class _Context:
    snapshot: Snapshot
    memory: Memory
    fleet: Fleet
    inputs: Mapping[str, str]


def _flip(context: _Context, pair: tuple[Role, Role], pressures: tuple[Pressure, Pressure]) -> Want:
    """Whether a pod of the first role of ``pair`` should go to the second, the hotter of the two ``pressures``."""
    inputs, serving = context.inputs, context.fleet.serving_roles
    hot, cool = pressures
    donor, receiver = pair
    donors, receivers = serving[donor], serving[receiver]
    if hot.value < tuning.HOT:
        return Want(hold=STEADY, inputs=inputs)
    if donors < 2:
        return Want(hold=Hold(reasons.ROLE_FLOOR, f"{donor} has one serving pod"), inputs=inputs)
    if cool.value * donors / (donors - 1) > tuning.BAND * hot.value * receivers / (receivers + 1):
        return Want(hold=STEADY, inputs=inputs)
    hold = carries(context.snapshot, context.memory, context.fleet, donor)
    if hold is not None:
        return Want(hold=hold, inputs=inputs)
    reason = reasons.PREFILL_PRESSURE if receiver is Role.PREFILL else reasons.DECODE_PRESSURE
    message = f"pressure {number(hot.value)} on {receiver}, {number(cool.value)} on {donor}"
    return Want(donor, receiver, reason, message, inputs=inputs)


def carries(snapshot: Snapshot, memory: Memory, fleet: Fleet, donor: Role) -> Hold | None:
    """Why one pod less of ``donor`` would not carry what it carries now, if that is known."""
    seen = [remembered(memory, donor, layout, snapshot) for layout in _layouts(fleet, donor)]
    capacity = min((value for value in seen if value is not None), default=None)
    if capacity is None:
        return None
    rate = rate_per_pod(snapshot, fleet, donor)
    if isinstance(rate, Hold):
        return rate
    donors = fleet.serving_roles[donor]
    after = rate * donors / (donors - 1)
    if after <= tuning.DONOR_SHARE * capacity:
        return None
    message = f"{donor} would have {number(after)} tokens/s per pod; it saturated at {number(capacity)}"
    return Hold(reasons.KNOWN_CAPACITY, message)


def _layouts(fleet: Fleet, role: Role) -> set[Layout]:
    return {pod.layout for pod in fleet.serving if pod.role is role}


def evidence_key(receiver: Role, donor: Role | None = None) -> str:
    """Name under which `Memory.evidence_since` keeps since when a flip to a role has been wanted.

    Unified pods that go to Prefill and to Decode do it for the same reason: two are a pair.
    """
    return f"{TransitionKind.ROLE}:{'Split' if donor is Role.UNIFIED else receiver}"


def role_verdict(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Verdict:
    """Transitions between Prefill and Decode that pressure asks for, best candidate first."""
    if snapshot.spec.role(Role.PREFILL) is None:
        return Verdict(hold=STEADY)
    wanted = want(snapshot, memory, fleet)
    if wanted.donor is None or wanted.receiver is None:
        return Verdict(hold=wanted.hold, inputs=wanted.inputs)
    candidates = flips(wanted.donor, wanted.receiver, fleet, memory, wanted.reason)
    return Verdict(candidates, None, wanted.inputs, evidence_key(wanted.receiver), wanted.message)


def flips(donor: Role, receiver: Role, fleet: Fleet, memory: Memory, reason: str) -> tuple[Transit, ...]:
    """A transition for each serving pod of ``donor``."""
    pods = [pod for pod in fleet.serving if pod.role is donor]
    return tuple(
        Transit(pod.name, TransitionKind.ROLE, receiver.value, pod.epoch, reason) for pod in by_rest(pods, memory)
    )
