# SPDX-License-Identifier: Apache-2.0
"""Floors and ceilings of roles: when a change of the spec has left one broken, which flip mends it."""

from dataclasses import dataclass

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Role
from gearshift.policy.fleet import Fleet
from gearshift.policy.targets import ceiling


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
