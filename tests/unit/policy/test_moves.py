# SPDX-License-Identifier: Apache-2.0
"""Moves are seen on the pods, once each, and forgotten after an hour."""

from dataclasses import replace

from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.policy.memory import fold
from gearshift.policy.plan import Memory
from tests.unit.policy.build import NOW, pod, seasoned, snapshot


def told(memory: Memory) -> list[tuple[str, str, str, str]]:
    """Moves in short."""
    return [(move.pod, move.kind.value, move.from_, move.to) for move in memory.moves]


def test_a_pod_that_serves_in_another_layout_has_moved() -> None:
    memory = fold(seasoned(), snapshot([pod(0), pod(1)]))
    assert told(memory) == []
    draining = replace(pod(0), phase=PodPhase.DRAINING)
    memory = fold(memory, snapshot([draining, pod(1)], at=NOW + 1))
    assert told(memory) == []
    after = snapshot([pod(0, layout=Layout.DP, epoch=1, since=NOW + 2), pod(1)], at=NOW + 3)
    memory = fold(memory, after)
    assert told(memory) == [("chat-0", "Layout", "TP", "DP")]
    assert memory.moves[0].at == NOW + 2
    assert fold(memory, after) == memory


def test_a_pod_that_was_never_seen_serving_has_not_moved() -> None:
    """Also one that was made anew under the same name."""
    memory = fold(seasoned(), snapshot([pod(0)]))
    anew = pod(0, layout=Layout.DP, uid="another", since=NOW + 1)
    assert told(fold(memory, snapshot([anew], at=NOW + 2))) == []


def test_a_change_of_role_is_a_move() -> None:
    memory = fold(seasoned(), snapshot([pod(0, Role.DECODE)]))
    memory = fold(memory, snapshot([pod(0, Role.PREFILL, epoch=1, since=NOW + 1)], at=NOW + 2))
    assert told(memory) == [("chat-0", "Role", "Decode", "Prefill")]


def test_moves_are_forgotten_after_an_hour_and_pods_with_their_uid() -> None:
    memory = fold(fold(seasoned(), snapshot([pod(0)])), snapshot([pod(0, layout=Layout.DP, since=NOW)], at=NOW))
    assert len(memory.moves) == 1
    later = fold(memory, snapshot([pod(1)], at=NOW + 3600))
    assert later.moves == ()
    assert set(later.seen) == {"uid-1"}
