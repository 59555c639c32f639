# SPDX-License-Identifier: Apache-2.0
"""How many pods: between the floor and the ceiling of a service with one role, by demand and by what misses objectives.

Scaling is on for a service that leaves ``replicas`` out and gives its only role a ``max`` above its floor. A service
whose ``replicas`` someone sets (kubectl scale, HPA, KEDA, GitOps) has that number; one with split roles keeps the
number that its roles ask for, and pods change roles instead.

The number of pods that is desired survives in `Memory.scale`; after a restart it is what lives, or what the spec asks
for if that is more, and nothing shrinks before the stable window has been watched anew.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Actuation, ScaleOwner
from gearshift.policy import tuning
from gearshift.policy.capacity import remembered
from gearshift.policy.fleet import Fleet
from gearshift.policy.identity import plan_id
from gearshift.policy.plan import Action, Hold, Memory, Need, ScaleMemory
from gearshift.policy.pressure import known
from gearshift.policy.repair import repair
from gearshift.policy.scaledown import scale_down
from gearshift.policy.snapshot import Signal, Snapshot
from gearshift.policy.targets import total_target
from gearshift.policy.verdict import number

_SIGNALS = (
    Signal.WAITING, Signal.RUNNING, Signal.KV_USAGE, Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS, Signal.TTFT_P90,
    Signal.ITL_P90,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bounds:
    """Fewest and most pods."""

    least: int
    most: int

    def clamp(self, pods: int) -> int:
        """The nearest number within."""
        return min(max(pods, self.least), self.most)


@dataclass(frozen=True, slots=True)
class Sizing:
    """Pods that the present demand asks for: ``up`` as few as carry it, ``down`` as many as must stay."""

    up: int
    down: int
    inputs: Mapping[str, str] = field(default_factory=dict)


def bounds(spec: InferenceServiceSpec) -> Bounds | None:
    """Where scaling may go, or None when it is off.

    | replicas | roles | max of the role | scaling |
    |---|---|---|---|
    | any | any | any | off when scaling.owner is External |
    | set | any | any | off: its owner says how many |
    | left out | several | any | off |
    | left out | one | left out, or the floor | off |
    | left out | one | above the floor | floor (at least 1) to max |
    """
    if spec.scaling.owner is ScaleOwner.EXTERNAL or spec.replicas is not None or len(spec.roles) != 1:
        return None
    role = spec.roles[0]
    if role.max is None or role.max <= max(1, role.floor):
        return None
    return Bounds(max(1, role.floor), role.max)


def sizing(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Sizing | Hold:
    """Pods by demand and by symptoms, the more of both.

    Demand: work of one pod by `Snapshot.rates` of the layout in use, else tokens/s against what a pod was seen to carry
    when it saturated. Symptoms, for ``n`` serving pods:

    | demand | requests wait or KV cache is full | an objective is missed | load is light on every count | up | down |
    |---|---|---|---|---|---|
    | known | no | any | any | demand | demand and bursts |
    | known | yes | any | any | as well n + 1 | as well n + 1 |
    | no yardstick | yes, or | yes | no | 1.5 n | n |
    | no yardstick | no | no | no | 1 | n |
    | no yardstick | no | no | yes | 1 | n - 1 |
    | a signal is unknown | | | | Hold MetricsMissing | |

    With a yardstick a missed objective alone asks for nothing: long prompts miss TTFT on an idle pod too.
    """
    values = known(snapshot.metrics, _SIGNALS)
    if isinstance(values, Hold):
        return values
    pods = len(fleet.serving)
    if not pods:
        return Sizing(1, 1)
    inputs = {"demandPromptTokens": number(values[Signal.PROMPT_TOKENS])}
    by_demand = _by_demand(snapshot, memory, fleet, values)
    queueing = values[Signal.WAITING] / pods >= tuning.QUEUE_SOME or values[Signal.KV_USAGE] >= tuning.KV_FULL
    if by_demand is None:
        strained = queueing or _late(snapshot, values)
        calm = _light(snapshot, values, pods)
        return Sizing(pods + max(1, pods // 2) if strained else 1, pods - 1 if calm else pods, inputs)
    up, down = by_demand
    inputs["demandPods"] = number(up)
    least = pods + 1 if queueing else 1
    return Sizing(max(least, math.ceil(up)), max(least, math.ceil(down)), inputs)


def _by_demand(
    snapshot: Snapshot, memory: Memory, fleet: Fleet, values: Mapping[Signal, float]
) -> tuple[float, float] | None:
    """Pods to carry the demand, and pods that must stay, before rounding; None when no yardstick is known."""
    layout = fleet.layout(snapshot.spec.parallelism.layouts, snapshot.spec.parallelism.start)
    prompts, tokens = values[Signal.PROMPT_TOKENS], values[Signal.GENERATION_TOKENS]
    rates = snapshot.rates.get(layout)
    if rates is not None:
        objectives = snapshot.spec.policy.objectives
        share = rates.share(tuning.ITL_SHARE * objectives.itl.seconds, tuning.BUSY_SHARE)
        work = rates.work(prompts, tokens)
        burst = rates.burst(work, objectives.ttft.seconds)
        up, down = (max(work / share, work + bursts * burst) for bursts in (tuning.BURSTS, tuning.SPARE_BURSTS))
        return up, down
    capacity = remembered(memory, None, layout, snapshot)
    if capacity is None:
        return None
    work = (prompts + tokens) / capacity
    return work / tuning.DONOR_SHARE, work / tuning.LIGHT_SHARE


def _late(snapshot: Snapshot, values: Mapping[Signal, float]) -> bool:
    objectives = snapshot.spec.policy.objectives
    return values[Signal.TTFT_P90] > objectives.ttft.seconds or values[Signal.ITL_P90] > objectives.itl.seconds


def _light(snapshot: Snapshot, values: Mapping[Signal, float], pods: int) -> bool:
    objectives = snapshot.spec.policy.objectives
    left = max(1, pods - 1) / pods
    return (
        values[Signal.WAITING] / pods <= tuning.QUEUE_LOW
        and values[Signal.KV_USAGE] <= tuning.KV_LOW * left
        and values[Signal.RUNNING] <= tuning.RUNNING_LOW * max(1, pods - 1)
        and values[Signal.TTFT_P90] <= tuning.LIGHT_SHARE * objectives.ttft.seconds
        and values[Signal.ITL_P90] <= tuning.LIGHT_SHARE * objectives.itl.seconds
    )


def initial(snapshot: Snapshot, fleet: Fleet, limits: Bounds) -> int:
    """Pods desired when nothing is remembered."""
    return limits.clamp(max(len(fleet.live) + len(fleet.broken), total_target(snapshot.spec)))


def pods(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> int | None:
    """Pods that the service is to have; None when scaling is off and its spec says so."""
    limits = bounds(snapshot.spec)
    if limits is None:
        return None
    if memory.scale is None:
        return initial(snapshot, fleet, limits)
    return limits.clamp(memory.scale.wanted if _approved(snapshot, memory.scale, fleet) else memory.scale.desired)


def inputs(memory: Memory) -> dict[str, str]:
    """Numbers behind the number of pods, for people."""
    scale = memory.scale
    if scale is None or not scale.needs:
        return {}
    now, most = scale.needs[-1], max(need.down for need in scale.needs)
    return {"podsNeeded": str(now.up), "podsKept": str(most), "podsDesired": str(scale.desired)}


def moves(snapshot: Snapshot, fleet: Fleet, wanted: int) -> tuple[Action, ...]:
    """What brings the pods to ``wanted``: creations, or the deletion of a named pod."""
    at = asked(snapshot, wanted)
    return repair(at, fleet) or scale_down(at, fleet)


def _approved(snapshot: Snapshot, scale: ScaleMemory, fleet: Fleet) -> bool:
    """Whether a human has approved what is wanted now."""
    if snapshot.spec.policy.actuation is not Actuation.APPROVE or snapshot.approved is None or snapshot.hold:
        return False
    return snapshot.approved == plan_id(snapshot.uid, moves(snapshot, fleet, scale.wanted), fleet)


def remember(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> ScaleMemory | None:
    """What scaling remembers after this snapshot; None when it is off."""
    limits = bounds(snapshot.spec)
    if limits is None:
        return None
    before = memory.scale or ScaleMemory(initial(snapshot, fleet, limits))
    desired = limits.clamp(before.desired)
    found = sizing(snapshot, memory, fleet)
    if isinstance(found, Hold):
        return replace(before, desired=desired, wanted=desired)
    since = snapshot.at - tuning.STABLE_SECONDS
    needs = tuple(need for need in before.needs if since < need.at < snapshot.at)
    needs = (*needs, Need(snapshot.at, limits.clamp(found.up), limits.clamp(found.down)))
    wanted = _wanted(snapshot, replace(before, desired=desired, needs=needs), memory, fleet)
    return _adopt(snapshot, replace(before, desired=desired, wanted=wanted, needs=needs), fleet)


def _wanted(snapshot: Snapshot, scale: ScaleMemory, memory: Memory, fleet: Fleet) -> int:
    """Pods wanted now.

    | need now | most needed in the stable window | watched, and long since the last growth, loss and regret | wanted |
    |---|---|---|---|
    | above desired | | | the need |
    | at most desired | desired or more | | desired |
    | at most desired | below desired | no | desired |
    | at most desired | below desired | yes, and every pod serves | desired - 1 |
    """
    now, desired = scale.needs[-1], scale.desired
    if now.up > desired:
        return now.up
    settled = len(fleet.serving) == len(fleet.pods) == desired
    if settled and _rested(snapshot.at, scale, memory) and max(need.down for need in scale.needs) < desired:
        return desired - 1
    return desired


def _rested(at: float, scale: ScaleMemory, memory: Memory) -> bool:
    """Whether a pod may go as far as the past says."""
    rests = (
        (memory.started_at, tuning.WATCH_SECONDS),
        (scale.grown_at, tuning.REVERSAL_SECONDS),
        (scale.shrunk_at, tuning.SHRINK_SECONDS),
        (scale.regretted_at, tuning.REGRET_SECONDS),
    )
    return all(since is None or at - since >= seconds for since, seconds in rests)


def _adopt(snapshot: Snapshot, scale: ScaleMemory, fleet: Fleet) -> ScaleMemory:
    """Desire what is wanted, where the policy may act. To grow soon after a pod went is a regret."""
    may_act = snapshot.spec.policy.actuation is Actuation.AUTO or _approved(snapshot, scale, fleet)
    if scale.wanted == scale.desired or snapshot.hold or not may_act:
        return scale
    at = snapshot.at
    if scale.wanted < scale.desired:
        return replace(scale, desired=scale.wanted, shrunk_at=at)
    regret = scale.shrunk_at is not None and at - scale.shrunk_at < tuning.SOON_SECONDS
    regretted_at = at if regret else scale.regretted_at
    return replace(scale, desired=scale.wanted, grown_at=at, regretted_at=regretted_at)


def asked(snapshot: Snapshot, pods: int | None) -> Snapshot:
    """The snapshot with ``pods`` as what its spec asks for; as it is when None."""
    if pods is None:
        return snapshot
    return replace(snapshot, spec=snapshot.spec.model_copy(update={"replicas": pods}))
