# SPDX-License-Identifier: Apache-2.0
"""How many pods: between the floor and the ceiling of a service with one role, by demand and by what misses objectives.

Scaling is on for a service that leaves ``replicas`` out and gives its only role a ``max`` above its floor. A service
whose ``replicas`` someone sets (kubectl scale, HPA, KEDA, GitOps) has that number; one with split roles keeps the
number that its roles ask for, and pods change roles instead.

The number of pods that is desired survives in `Memory.scale`; after a restart it is what lives, or what the spec asks
for if that is more, and nothing shrinks before the stable window has been watched anew.
"""

import math
from dataclasses import dataclass, replace

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Actuation, ScaleOwner
from gearshift.policy import tuning
from gearshift.policy.demand import lead_seconds
from gearshift.policy.fleet import Fleet
from gearshift.policy.identity import plan_id
from gearshift.policy.needs import kept, lasting, rested
from gearshift.policy.plan import Action, Hold, Memory, Need, ScaleMemory
from gearshift.policy.repair import repair
from gearshift.policy.samples import sampled
from gearshift.policy.scaledown import scale_down
from gearshift.policy.sizing import sizing
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.standby import with_standby
from gearshift.policy.surges import Surge, surged
from gearshift.policy.targets import total_target
from gearshift.policy.verdict import number


@dataclass(frozen=True, slots=True)
class Bounds:
    """Fewest and most pods."""

    least: int
    most: int

    def clamp(self, pods: int) -> int:
        """The nearest number within."""
        return min(max(pods, self.least), self.most)


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
    now = scale.needs[-1]
    stay = min(scale.desired, kept(scale, now.at, memory.started_at))
    told = {"podsNeeded": str(now.up), "podsKept": str(stay), "podsDesired": str(scale.desired)}
    return told | {"demandPods": number(scale.samples[-1].work)} if scale.samples else told


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
    found = with_standby(found, snapshot.spec.scaling.standby or 0)
    up, down, carry = (limits.clamp(pods) for pods in (found.up, found.down, found.carry))
    now = Need(snapshot.at, up, down, carry, math.ceil(found.load * 10) / 10)
    span = (tuning.TREND_SPANS + 1) * lead_seconds(memory, snapshot.revision)
    samples = sampled(before.samples, found.sample, snapshot.at, span)
    surges = surged(before.surges, Surge(snapshot.at, found.rise))
    after = replace(before, desired=desired, needs=lasting(before.needs, now), samples=samples, surges=surges)
    return _adopt(snapshot, replace(after, wanted=_wanted(snapshot, after, memory, fleet)), fleet)


def _wanted(snapshot: Snapshot, scale: ScaleMemory, memory: Memory, fleet: Fleet) -> int:
    """Pods wanted now.

    | need now | kept by what was needed | watched, and long since the last growth, loss and regret | wanted |
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
    if settled and rested(snapshot.at, scale, memory) and kept(scale, snapshot.at, memory.started_at) < desired:
        return desired - 1
    return desired


def _adopt(snapshot: Snapshot, scale: ScaleMemory, fleet: Fleet) -> ScaleMemory:
    """Desire what is wanted, where the policy may act.

    | wanted | a pod went | regretted | regrets |
    |---|---|---|---|
    | more, and the load keeps more busy | within `tuning.SOON_SECONDS` | now | one more |
    | more, as room for chance | within `tuning.SOON_SECONDS` | now | as they are |
    | more | before that | as it was | one fewer: that loss paid |
    | fewer | | as it was | as they are |
    """
    may_act = snapshot.spec.policy.actuation is Actuation.AUTO or _approved(snapshot, scale, fleet)
    if scale.wanted == scale.desired or snapshot.hold or not may_act:
        return scale
    at = snapshot.at
    if scale.wanted < scale.desired:
        return replace(scale, desired=scale.wanted, shrunk_at=at)
    grown = replace(scale, desired=scale.wanted, grown_at=at, shrunk_at=None)
    if scale.shrunk_at is None:
        return grown
    if at - scale.shrunk_at < tuning.SOON_SECONDS:
        return replace(grown, regretted_at=at, regrets=scale.regrets + (scale.needs[-1].carry > scale.desired))
    return replace(grown, regrets=max(0, scale.regrets - 1))


def asked(snapshot: Snapshot, pods: int | None) -> Snapshot:
    """The snapshot with ``pods`` as what its spec asks for; as it is when None."""
    if pods is None:
        return snapshot
    return replace(snapshot, spec=snapshot.spec.model_copy(update={"replicas": pods}))
