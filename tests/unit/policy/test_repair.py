# SPDX-License-Identifier: Apache-2.0
"""Pods that ended are replaced, pods that lack are made."""

from gearshift.api import reasons
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Action, CreatePod, DeletePod
from gearshift.policy.repair import repair
from gearshift.policy.snapshot import Snapshot
from tests.unit.policy.build import NOW, pod, pods, snapshot, spec, split


def mend(state: Snapshot) -> tuple[Action, ...]:
    """What repair does."""
    return repair(state, Fleet.of(state))


def created(actions: tuple[Action, ...]) -> list[tuple[int, Role]]:
    """Ordinals and roles of the pods that are made."""
    return [(action.ordinal, action.role) for action in actions if isinstance(action, CreatePod)]


def test_an_empty_service_gets_its_roles() -> None:
    """Each role gets its pods, at the lowest ordinals."""
    actions = mend(snapshot((), split(1, 3)))
    assert sorted(role for _, role in created(actions)) == [Role.DECODE] * 3 + [Role.PREFILL]
    assert [ordinal for ordinal, _ in created(actions)] == [0, 1, 2, 3]


def test_a_full_service_needs_nothing() -> None:
    """Nothing is to be done for a fleet as the spec wants it."""
    assert mend(snapshot(pods(1, 3), split(1, 3))) == ()


def test_a_failed_pod_is_deleted_and_replaced_at_the_next_free_ordinal() -> None:
    """The replacement does not wait for the name of the failed one."""
    views = (pod(0), pod(1, failed=True), pod(3))
    actions = mend(snapshot(views, spec(replicas=3)))
    assert actions[0] == DeletePod("chat-1", "uid-1", reasons.POD_FAILED)
    assert created(actions) == [(2, Role.UNIFIED)]


def test_a_pod_that_failed_at_once_is_left_for_a_moment() -> None:
    """A pod that fails as soon as it starts is not remade in a tight loop."""
    state = snapshot((pod(0), pod(1, failed=True, created_at=NOW - 3)), spec(replicas=2))
    assert mend(state) == ()


def test_a_pod_of_a_lost_node_is_deleted_by_force_even_while_deleting() -> None:
    """Nobody on that node would confirm the deletion."""
    state = snapshot((pod(0), pod(1, node_lost=True, deleting=True, created_at=NOW - 1)), spec(replicas=2))
    actions = mend(state)
    assert actions[0] == DeletePod("chat-1", "uid-1", reasons.NODE_LOST, force=True)
    assert created(actions) == [(2, Role.UNIFIED)]


def test_a_deleting_pod_is_replaced_under_another_name() -> None:
    """Its ordinal is taken until it is gone."""
    assert created(mend(snapshot((pod(0, deleting=True), pod(1)), spec(replicas=2)))) == [(2, Role.UNIFIED)]


def test_a_new_pod_takes_the_role_that_live_pods_lack() -> None:
    """The roles of live pods count, whatever roles they were made with."""
    views = (pod(0, Role.DECODE, epoch=3), pod(1, Role.DECODE), pod(2, Role.DECODE))
    assert created(mend(snapshot(views, split(2, 2)))) == [(3, Role.PREFILL)]


def test_a_new_pod_takes_the_layout_of_the_service() -> None:
    """Most live pods decide; the initial layout does on a tie."""
    wide = mend(snapshot((pod(0, layout=Layout.DP), pod(1, layout=Layout.DP), pod(2)), spec(replicas=4)))
    tied = mend(snapshot((pod(0, layout=Layout.DP), pod(1)), spec(replicas=3)))
    assert [action.layout for action in wide if isinstance(action, CreatePod)] == [Layout.DP]
    assert [action.layout for action in tied if isinstance(action, CreatePod)] == [Layout.TP]


def test_a_pod_that_cannot_be_asked_is_not_replaced() -> None:
    """The operator's view may be at fault, the pod may serve."""
    assert mend(snapshot((pod(0, phase=PodPhase.UNKNOWN),), spec(replicas=1))) == ()
