# SPDX-License-Identifier: Apache-2.0
"""Whether pods are better Unified, or split into Prefill and Decode: for services that list all three roles.

Splitting keeps prompts from delaying tokens. It costs the transfer of the KV cache, and what one side has to spare
helps the other nothing. So it gains on long prompts beside much decoding in a fleet of some size, and loses in small
fleets, on lopsided or light loads, and where transfers are slow.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gearshift.api import reasons
from gearshift.api.vocabulary import Role, TransitionKind
from gearshift.policy import carry, tuning
from gearshift.policy.capacity import remembered
from gearshift.policy.carry import Division, Needed
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Hold, Memory
from gearshift.policy.pressure import known
from gearshift.policy.role import Want, evidence_key, flips
from gearshift.policy.snapshot import Signal, Snapshot
from gearshift.policy.verdict import STEADY, Verdict, number

_PAIR = (Role.PREFILL, Role.DECODE)


@dataclass(frozen=True, slots=True)
class Case:
    """What speaks for Unified pods and for split ones."""

    now: Division
    unified: Division  # as Unified as the spec lets it be
    split: Division  # as split as the spec lets it be
    needed: Needed
    disturbed: bool  # prompts delay tokens on Unified pods
    lately: bool  # Unified pods were disturbed, not long ago
    full: bool  # and that at this load, or not much above it
    slow: bool  # KV caches take, or lately took, too long to arrive
    calm: bool  # objectives are held by far

    @property
    def carried(self) -> tuple[float, float]:
        """Multiples of the present load that the pods carry, as Unified as can be and as split as can be."""
        return self.needed.carried(self.unified), self.needed.carried(self.split)

    @property
    def inputs(self) -> Mapping[str, str]:
        """Numbers for people."""
        unified, split = self.carried
        return {"unifiedCarries": f"{number(unified)}x", "splitCarries": f"{number(split)}x"}


def want(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Want:
    """Change of one pod, for services that list Unified, Prefill and Decode.

    u and s are the multiples of the present load that the pods carry when they are as Unified, and as split, as floors
    and ceilings let them be. Disturbed: the ITL of Unified pods misses its objective, and a fifth of the work is
    prompts. Full: Unified pods were seen disturbed at this load, or less than 1.7 times this load, within 60 windows.
    Slow: within 60 windows, KV caches took half of the TTFT objective to arrive. Easy: u >= 3, TTFT and ITL within 60 %
    of their objectives, no Unified pod disturbed within 60 windows, and 4 pods, which may split again under load.

    | disturbed | slow | full | u, s | wants |
    |---|---|---|---|---|
    | a signal is unknown | | | | Hold MetricsMissing |
    | any | any | any | rates of a pod unknown | Hold RatesUnknown: all stay as they are |
    | any | any | any | nothing is asked, or some pod starts | none |
    | yes | no | any | 1 <= u < 1.15 s, or s >= 1.15 u | split: Interference |
    | yes | yes | any | any | none: one speaks against the other |
    | yes | no | any | u >= 1.15 s, or u < 1 | none: split pods carry less, or the load is too much for both |
    | no | yes | no | any | Unified: SlowTransfers |
    | no | no | no | u >= 1.15 s, or easy | Unified: DisaggregationLoses |
    | no | no | any | s >= 1.15 u, u < 1.5 | split: DisaggregationPays |
    | else, Prefill or Decode beside Unified has no other half | no | any | s >= u | split: DisaggregationPays |
    | else, Prefill or Decode beside Unified has no other half | | | | Unified: DisaggregationLoses |
    | else | | | | none |

    Which pod, and whether enough is carried meanwhile: see `step`.
    """
    if snapshot.spec.role(Role.UNIFIED) is None or not snapshot.spec.disaggregated:
        return Want(hold=STEADY)
    case = judge(snapshot, memory, fleet)
    return Want(hold=case) if isinstance(case, Hold) else _wanted(case)


def _wanted(case: Case) -> Want:
    reason = _reason(case)
    if reason in (reasons.INTERFERENCE, reasons.DISAGGREGATION_PAYS):
        return step(case, reason, *_parted(case))
    if reason is not None:
        return step(case, reason, *_joined(case))
    if not halved(case.now):
        return Want(hold=STEADY, inputs=case.inputs)
    unified, split = case.carried
    if split >= unified and not case.slow:
        return step(case, reasons.DISAGGREGATION_PAYS, *_parted(case))
    return step(case, reasons.DISAGGREGATION_LOSES, *_joined(case))


def halved(pods: Division) -> bool:
    """Whether Prefill or Decode has pods beside Unified ones, and the other has none: the router gives them nothing."""
    return bool(pods.get(Role.UNIFIED)) and bool(pods.get(Role.PREFILL)) != bool(pods.get(Role.DECODE))


def _reason(case: Case) -> str | None:
    """Which row of `want` holds; None for the last ones."""
    unified, split = case.carried
    gains = unified >= tuning.ROLE_GAIN * split
    pays = split >= tuning.ROLE_GAIN * unified
    if case.disturbed:
        return reasons.INTERFERENCE if not case.slow and not gains and (pays or unified >= 1) else None
    if case.slow:
        return None if case.full else reasons.SLOW_TRANSFERS
    if not case.full and (gains or _easy(case)):
        return reasons.DISAGGREGATION_LOSES
    return reasons.DISAGGREGATION_PAYS if pays and unified < tuning.UNIFIED_SCARCE else None


def _easy(case: Case) -> bool:
    """Whether Unified pods carry the load with ease, and go on doing so as far as the past says."""
    enough = case.carried[0] >= tuning.UNIFIED_EASY and sum(case.now.values()) >= tuning.REVERSIBLE_PODS
    return case.calm and enough and not case.lately


def step(case: Case, reason: str, donor: Role | None, receiver: Role | None) -> Want:
    """One pod of ``donor`` to ``receiver``, where enough is carried while it changes.

    k is the multiple of the load that is carried in the worst moment: with the pod out, after it has come, and, where
    it then is alone beside Unified pods, with the next pod out.

    | donor or receiver | k | wants |
    |---|---|---|
    | none: all are as wanted | any | none |
    | some | >= 1.18, or half of what is carried now | the change |
    | some | less | Hold CapacityKept |
    """
    if donor is None or receiver is None:
        return Want(hold=STEADY, inputs=case.inputs)
    worst = _worst(case, donor, receiver)
    least = min(1 / tuning.DONOR_SHARE, tuning.CARRY_KEPT * case.needed.carried(case.now))
    if worst < least:
        message = f"while a {donor} pod goes to {receiver}, pods would carry {number(worst)} times the load"
        return Want(hold=Hold(reasons.CAPACITY_KEPT, message), inputs=case.inputs)
    return _change(case, donor, receiver, reason)


def _change(case: Case, donor: Role, receiver: Role, reason: str) -> Want:
    unified, split = case.carried
    message = f"pods carry {number(unified)} times the load as Unified ones, {number(split)} times as split ones"
    return Want(donor, receiver, reason, message, inputs=case.inputs)


def _worst(case: Case, donor: Role, receiver: Role) -> float:
    out = _moved(case.now, donor, None)
    after = _moved(case.now, donor, receiver)
    worst = min(case.needed.carried(out), case.needed.carried(after))
    if donor is Role.UNIFIED and halved(after):
        worst = min(worst, case.needed.carried(_moved(after, Role.UNIFIED, None)))
    return worst


def _moved(pods: Division, donor: Role, receiver: Role | None) -> dict[Role, int]:
    shift = Counter({role: pods.get(role, 0) for role in Role})
    shift[donor] -= 1
    if receiver is not None:
        shift[receiver] += 1
    return dict(shift)


def _joined(case: Case) -> tuple[Role | None, Role | None]:
    """The role that gives a pod to Unified: of those with more than they are to keep, the one missed least."""
    donors = [role for role in _PAIR if case.now.get(role, 0) > case.unified[role]]
    if not donors or case.now.get(Role.UNIFIED, 0) >= case.unified[Role.UNIFIED]:
        return None, None
    return max(donors, key=lambda role: (_worst(case, role, Role.UNIFIED), case.now[role])), Role.UNIFIED


def _parted(case: Case) -> tuple[Role | None, Role | None]:
    """The role that a Unified pod goes to: the one that the other waits for, else the one that lacks most."""
    lacks = {role: case.split[role] - case.now.get(role, 0) for role in _PAIR}
    open_roles = [role for role in _PAIR if lacks[role] > 0]
    if not open_roles or case.now.get(Role.UNIFIED, 0) <= case.split[Role.UNIFIED]:
        return None, None
    paired = any(case.now.get(role, 0) for role in _PAIR)
    return Role.UNIFIED, max(open_roles, key=lambda role: (paired and not case.now.get(role, 0), lacks[role]))


def judge(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Case | Hold:
    """What speaks for which; a Hold where that is not known, Steady where there is nothing to judge."""
    asked = carry.load(snapshot, fleet)
    if isinstance(asked, Hold):
        return asked
    needed = carry.needed(snapshot, fleet, asked)
    if isinstance(needed, Hold):
        return needed
    late = _late(snapshot, fleet)
    if isinstance(late, Hold):
        return late
    now = _division(snapshot, fleet)
    if now is None or not needed.unified:
        return STEADY
    unified, split = carry.most_unified(snapshot.spec, now, needed), carry.most_split(snapshot.spec, now, needed)
    if unified is None or split is None:
        return STEADY
    disturbed = late.unified > 1 and needed.prompt_share >= tuning.PROMPTS_DISTURB
    seen = _seen(snapshot, memory, fleet)
    full = seen is not None and asked.tokens / max(1, unified[Role.UNIFIED]) > tuning.LIGHT_SHARE * seen
    calm = late.service <= tuning.LIGHT_SHARE
    return Case(now, unified, split, needed, disturbed, seen is not None, full, slow(snapshot, memory), calm)


@dataclass(frozen=True, slots=True)
class _Late:
    """Latencies by their objectives: 1 is just held."""

    service: float  # the worse of TTFT and ITL
    unified: float  # ITL of the Unified pods


def _late(snapshot: Snapshot, fleet: Fleet) -> _Late | Hold:
    objectives = snapshot.spec.policy.objectives
    ttft, itl = max(objectives.ttft.seconds, 0.001), max(objectives.itl.seconds, 0.001)
    whole = known(snapshot.metrics, (Signal.TTFT_P90, Signal.ITL_P90))
    if isinstance(whole, Hold):
        return whole
    service = max(whole[Signal.TTFT_P90] / ttft, whole[Signal.ITL_P90] / itl)
    if not fleet.serving_roles.get(Role.UNIFIED):
        return _Late(service, 0.0)
    found = known(snapshot.metrics, (Signal.ITL_P90,), Role.UNIFIED)
    return found if isinstance(found, Hold) else _Late(service, found[Signal.ITL_P90] / itl)


def _division(snapshot: Snapshot, fleet: Fleet) -> Division | None:
    """Pods by role, those in transition in the one that they go to; None while a pod neither serves nor moves."""
    going = {each.pod: Role(each.to) for each in snapshot.in_flight if each.kind is TransitionKind.ROLE}
    if any(not pod.serving and pod.name not in fleet.moving for pod in fleet.live):
        return None
    return Counter(going.get(pod.name, pod.role) for pod in fleet.live)


def _seen(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> float | None:
    """Tokens per second and pod at which Unified pods were disturbed, if they were."""
    parallelism = snapshot.spec.parallelism
    return remembered(memory, Role.UNIFIED, fleet.layout(parallelism.layouts, parallelism.start), snapshot)


def slow(snapshot: Snapshot, memory: Memory) -> bool:
    """Whether transfers are, or lately were, too slow; ``memory`` is folded."""
    horizon = tuning.CAPACITY_WINDOWS * snapshot.spec.policy.window.seconds
    return memory.slow_transfers_at is not None and snapshot.at - memory.slow_transfers_at <= horizon


def slow_transfers_at(snapshot: Snapshot, memory: Memory) -> float | None:
    """When KV caches last took too long to arrive: by Little's law, those on their way by requests per second.

    | transfers waiting | requests / s | their ratio by the TTFT objective | result |
    |---|---|---|---|
    | unknown, or | unknown or 0 | | as it was |
    | known | known | < 0.5 | as it was |
    | known | known | >= 0.5 | now |
    """
    waiting = snapshot.metrics.value(Signal.TRANSFERS, Role.DECODE)
    requests = snapshot.metrics.value(Signal.REQUESTS, Role.DECODE)
    if waiting is None or not requests:
        return memory.slow_transfers_at
    too_long = tuning.TRANSFER_SHARE * snapshot.spec.policy.objectives.ttft.seconds
    return snapshot.at if waiting / requests >= too_long else memory.slow_transfers_at


def unified_verdict(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Verdict:
    """Transitions to or from Unified, best candidate first.

    What the performance model says must have been wanted for longer than what is measured: the mix of a short window is
    noise. A pair that lacks its other half is mended as soon.
    """
    wanted = want(snapshot, memory, fleet)
    if wanted.donor is None or wanted.receiver is None:
        return Verdict(hold=wanted.hold, inputs=wanted.inputs)
    candidates = flips(wanted.donor, wanted.receiver, fleet, memory, wanted.reason)
    measured = wanted.reason in (reasons.INTERFERENCE, reasons.SLOW_TRANSFERS)
    windows = tuning.MEASURED_WINDOWS if measured or halved(fleet.roles) else tuning.MODEL_WINDOWS
    evidence = evidence_key(wanted.receiver, wanted.donor)
    return Verdict(candidates, None, wanted.inputs, evidence, wanted.message, windows=windows)
