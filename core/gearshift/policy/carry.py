# SPDX-License-Identifier: Apache-2.0
"""What a division of the pods over the roles carries, as multiples of the present load, by the rates of a pod.

A Unified pod computes prompts and tokens in the same steps, so both have to leave the ITL objective room. A Prefill pod
has no tokens to delay, and a Decode pod no prompts to wait for; but what one of the two has to spare helps the other
nothing, and pods come in whole numbers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Role
from gearshift.policy import tuning
from gearshift.policy.demand import computed
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Hold
from gearshift.policy.pressure import known
from gearshift.policy.rates import EngineRates
from gearshift.policy.rolelayout import pinned
from gearshift.policy.snapshot import Signal, Snapshot
from gearshift.policy.targets import ceiling

Division = Mapping[Role, int]
"""Pods by role."""


@dataclass(frozen=True, slots=True)
class Load:
    """Tokens per second that are asked of the service, prompts in the prefix cache left out."""

    prompt_tokens: float
    generation_tokens: float
    tokens: float  # both, those in the prefix cache included


@dataclass(frozen=True, slots=True)
class Needed:
    """Pods that would carry the present load within the objectives: Unified ones alone, or Prefill with Decode ones."""

    unified: float
    prefill: float
    decode: float
    prompt_share: float = 0.0  # of the work of a Unified pod, what is prompts

    def carried(self, pods: Division) -> float:
        """Multiple of the present load that a division carries.

        | Unified | Prefill and Decode | result |
        |---|---|---|
        | any | both | what the Unified ones carry, and the weaker of the other two |
        | some | one of them | what the Unified ones carry: the router gives the others nothing |
        | none | one of them | what these carry, serving whole requests |
        """
        unified, prefill, decode = (pods.get(role, 0) for role in (Role.UNIFIED, Role.PREFILL, Role.DECODE))
        if not unified and not (prefill and decode):
            return _times(prefill + decode, self.unified)
        return _times(unified, self.unified) + min(_times(prefill, self.prefill), _times(decode, self.decode))


def _times(pods: int, needed: float) -> float:
    if not pods:
        return 0.0
    return pods / needed if needed > 0 else math.inf


def load(snapshot: Snapshot, fleet: Fleet) -> Load | Hold:
    """Load by what the roles that serve report; a Hold names the signal that is unknown."""
    prompts = generated = tokens = 0.0
    for role in fleet.serving_roles:
        values = known(snapshot.metrics, (Signal.WAITING, Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS), role)
        if isinstance(values, Hold):
            return values
        if role is not Role.DECODE:
            prompts += computed(snapshot, values[Signal.PROMPT_TOKENS], role)
            tokens += values[Signal.PROMPT_TOKENS]
        if role is not Role.PREFILL:
            generated += values[Signal.GENERATION_TOKENS]
    return Load(prompts, generated, tokens + generated)


def needed(snapshot: Snapshot, fleet: Fleet, asked: Load) -> Needed | Hold:
    """Pods needed by each role; a Hold says that the rates of a pod are not known."""
    objective = tuning.ITL_SHARE * snapshot.spec.policy.objectives.itl.seconds
    rates = {role: _rates(snapshot, fleet, role) for role in Role}
    unified, prefill, decode = rates[Role.UNIFIED], rates[Role.PREFILL], rates[Role.DECODE]
    if unified is None or prefill is None or decode is None:
        return Hold(reasons.RATES_UNKNOWN, "no performance model knows what a pod of this service can do")
    whole = unified.work(asked.prompt_tokens, asked.generation_tokens)
    return Needed(
        whole / unified.share(objective, tuning.BUSY_SHARE),
        prefill.work(asked.prompt_tokens, 0.0) / tuning.BUSY_SHARE,
        decode.work(0.0, asked.generation_tokens) / decode.share(objective, tuning.DECODE_SHARE),
        unified.work(asked.prompt_tokens, 0.0) / whole if whole else 0.0,
    )


def _rates(snapshot: Snapshot, fleet: Fleet, role: Role) -> EngineRates | None:
    parallelism = snapshot.spec.parallelism
    layout = pinned(snapshot.spec, role) or fleet.layout(parallelism.layouts, parallelism.start)
    return snapshot.rates.get(layout)


def most_unified(spec: InferenceServiceSpec, now: Division, needed: Needed) -> Division | None:
    """The division with as many Unified pods as bounds let there be; None when there is none."""
    limits = _Limits.of(spec, sum(now.values()))
    top = min(limits.most[Role.UNIFIED], limits.total - limits.least[Role.PREFILL] - limits.least[Role.DECODE])
    return _division(limits, top, now, needed)


def most_split(spec: InferenceServiceSpec, now: Division, needed: Needed) -> Division | None:
    """The division with as few Unified pods as bounds let there be; None without a Prefill and a Decode pod."""
    limits = _Limits.of(spec, sum(now.values()))
    rest = limits.total - limits.most[Role.PREFILL] - limits.most[Role.DECODE]
    found = _division(limits, max(limits.least[Role.UNIFIED], rest), now, needed)
    return found if found is not None and found[Role.PREFILL] and found[Role.DECODE] else None


@dataclass(frozen=True, slots=True)
class _Limits:
    """Fewest and most pods of each role, and pods over all."""

    total: int
    least: Division
    most: Division

    @classmethod
    def of(cls, spec: InferenceServiceSpec, total: int) -> "_Limits":
        roles = {role.name: role for role in spec.roles}
        least = {role: roles[role].floor if role in roles else 0 for role in Role}
        most = {role: ceiling(roles[role], total) if role in roles else 0 for role in Role}
        return cls(total, least, most)


def _division(limits: _Limits, unified: int, now: Division, needed: Needed) -> Division | None:
    """The division with so many Unified pods that carries the most; of equal ones the nearest to what is now."""
    rest = limits.total - unified
    low = max(limits.least[Role.PREFILL], rest - limits.most[Role.DECODE])
    high = min(limits.most[Role.PREFILL], rest - limits.least[Role.DECODE])
    if unified < limits.least[Role.UNIFIED] or unified > limits.most[Role.UNIFIED] or low > high:
        return None
    at, best = now.get(Role.PREFILL, 0), _peak(rest, needed)
    worth_trying = {min(max(n, low), high) for n in (1, rest - 1, at, best, best + 1)}
    found = ({Role.UNIFIED: unified, Role.PREFILL: n, Role.DECODE: rest - n} for n in worth_trying)
    return max(
        found,
        key=lambda each: (_paired(each), needed.carried(each), -abs(each[Role.PREFILL] - at), -each[Role.PREFILL]),
    )


def _peak(pods: int, needed: Needed) -> int:
    """Prefill pods, rounded down, that carry as much as the rest of ``pods`` does as Decode ones."""
    both = needed.prefill + needed.decode
    return int(pods * needed.prefill / both) if both > 0 else 0


def _paired(pods: Division) -> bool:
    """Whether each Prefill pod has a Decode pod to hand over to, and the reverse."""
    return bool(pods[Role.PREFILL]) == bool(pods[Role.DECODE])
