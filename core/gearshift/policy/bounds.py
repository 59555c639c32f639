# SPDX-License-Identifier: Apache-2.0
"""Floors and ceilings of roles: when a change of the spec has left one broken, which flip mends it."""

from dataclasses import dataclass

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Role
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Hold, Memory
from gearshift.policy.role import flips
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.targets import ceiling
from gearshift.policy.verdict import Source, Verdict


@dataclass(frozen=True, slots=True)
class Mend:
    """A pod of ``donor`` should serve as ``receiver``."""

    donor: Role
    receiver: Role
    message: str


def broken_bound(spec: InferenceServiceSpec, fleet: Fleet) -> Mend | None:
    """Flip that mends the first broken bound, or None.

    | some role | another role | flip |
    |---|---|---|
    | below its floor | above its floor | other to it; the one most above its floor gives |
    | above its ceiling | below its ceiling | it to other; the one least above its floor takes |
    | not in the spec | below its ceiling | as above its ceiling |
    """
    total = len(fleet.live)
    floors = {role.name: role.floor for role in spec.roles}
    ceilings = {role.name: ceiling(role, total) for role in spec.roles}
    counts = {role: fleet.roles.get(role, 0) for role in Role}
    spare = {role: counts[role] - floors.get(role, 0) for role in Role}
    room = [role for role in floors if counts[role] < ceilings[role]]
    donor = max(Role, key=lambda role: spare[role])
    for role, floor in floors.items():
        if counts[role] < floor and spare[donor] > 0:
            return Mend(donor, role, f"{role} has {counts[role]} pods, its floor is {floor}")
    for role in Role:
        top = ceilings.get(role, 0)
        if counts[role] > top and room:
            taker = min(room, key=lambda other: (spare[other], counts[other]))
            return Mend(role, taker, f"{role} has {counts[role]} pods, its ceiling is {top}")
    return None


def bounds_verdict(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Verdict | None:
    """Transitions that mend a broken floor or ceiling; None when none is broken. The spec orders it: no metrics."""
    bound = broken_bound(snapshot.spec, fleet)
    if bound is None:
        return None
    candidates = flips(bound.donor, bound.receiver, fleet, memory, reasons.ROLE_BOUNDS)
    hold = None if candidates else Hold(reasons.NO_SERVING_PODS, bound.message)
    return Verdict(candidates, hold, {}, None, bound.message, Source.BOUNDS)
