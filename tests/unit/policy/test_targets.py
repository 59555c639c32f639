# SPDX-License-Identifier: Apache-2.0
"""Splitting replicas over roles."""

from typing import Any

import pytest

from gearshift.api.vocabulary import Role
from gearshift.policy.targets import role_targets, total_target
from tests.unit.policy.build import spec


def roles(*entries: tuple[str, int, int | None, int | None]) -> list[dict[str, Any]]:
    """Entries of (name, replicas, min, max)."""
    return [
        {key: value for key, value in zip(("name", "replicas", "min", "max"), entry, strict=True) if value is not None}
        for entry in entries
    ]


@pytest.mark.parametrize(
    ("replicas", "entries", "expected"),
    [
        (None, [("Prefill", 2, None, None), ("Decode", 3, None, None)], (2, 3)),
        (0, [("Prefill", 2, None, None), ("Decode", 3, None, None)], (0, 0)),
        (5, [("Prefill", 2, None, None), ("Decode", 3, None, None)], (2, 3)),
        (10, [("Prefill", 2, None, None), ("Decode", 3, None, None)], (4, 6)),
        (2, [("Prefill", 2, None, None), ("Decode", 30, None, None)], (1, 1)),
        (8, [("Prefill", 1, 1, 2), ("Decode", 1, None, None)], (2, 6)),
        (8, [("Prefill", 1, 1, 2), ("Decode", 1, 1, 2)], (2, 2)),
        (4, [("Prefill", 1, 0, None), ("Decode", 3, 3, None)], (1, 3)),
        (2, [("Prefill", 0, 0, None), ("Decode", 0, 0, None)], (1, 1)),
        (3, [("Prefill", 0, 0, None), ("Decode", 2, None, None)], (0, 3)),
    ],
)
def test_targets_follow_shares_within_bounds(
    replicas: int | None, entries: list[tuple[str, int, int | None, int | None]], expected: tuple[int, int]
) -> None:
    """Shares of roles[].replicas, never below a floor nor above a ceiling."""
    service = spec(replicas=replicas, roles=roles(*entries))
    assert role_targets(service) == dict(zip((Role.PREFILL, Role.DECODE), expected, strict=True))
    assert total_target(service) == sum(expected)


def test_one_more_replica_is_one_more_pod_of_one_role() -> None:
    """Scaling by one never asks for a flip."""
    entries = roles(("Unified", 5, None, None), ("Prefill", 3, None, 9), ("Decode", 7, None, None))
    before = role_targets(spec(replicas=3, roles=entries))
    for replicas in range(4, 60):
        after = role_targets(spec(replicas=replicas, roles=entries))
        assert sorted(after[role] - before[role] for role in after) == [0, 0, 1]
        before = after
