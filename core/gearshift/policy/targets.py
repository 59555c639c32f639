# SPDX-License-Identifier: Apache-2.0
"""How many pods the spec asks for, over all roles and in each."""

from gearshift.api.v1alpha1 import InferenceServiceSpec, RoleSpec
from gearshift.api.vocabulary import Role


def ceiling(role: RoleSpec, total: int) -> int:
    """Most pods that a role may have in a service of ``total`` pods."""
    return total if role.max is None else role.max


def role_targets(spec: InferenceServiceSpec) -> dict[Role, int]:
    """Pods by role, in the order of ``spec.roles``.

    | spec.replicas | result |
    |---|---|
    | left out | each role's replicas |
    | 0 | nothing |
    | n | each role's floor, then one by one to the role that is furthest below its share of ``roles[].replicas`` |

    The divisor method (Sainte-Lague) makes n + 1 pods the pods of n plus one, so that scaling never asks for a flip.
    No role goes above its ceiling; pods that fit nowhere are not made.
    """
    if spec.replicas is None:
        return {role.name: role.replicas for role in spec.roles}
    if spec.replicas == 0:
        return {role.name: 0 for role in spec.roles}
    counts = {role.name: min(role.floor, spec.replicas) for role in spec.roles}
    for _ in range(spec.replicas - sum(counts.values())):
        role = _next(spec, counts)
        if role is None:
            break
        counts[role] += 1
    return counts


def _next(spec: InferenceServiceSpec, counts: dict[Role, int]) -> Role | None:
    """Role that the next pod belongs to; None when all are at their ceiling."""
    total = spec.replicas or 0
    open_roles = [role for role in spec.roles if counts[role.name] < ceiling(role, total)]
    weighted = [role for role in open_roles if role.replicas > 0] or open_roles
    if not weighted:
        return None
    return max(weighted, key=lambda role: max(role.replicas, 1) / (2 * counts[role.name] + 1)).name


def total_target(spec: InferenceServiceSpec) -> int:
    """Pods over all roles."""
    return sum(role_targets(spec).values())
