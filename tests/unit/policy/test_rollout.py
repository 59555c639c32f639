# SPDX-License-Identifier: Apache-2.0
"""Pods of an older spec are replaced one at a time."""

import pytest

from gearshift.api import reasons
from gearshift.api.vocabulary import PodPhase
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import DeletePod, Hold
from gearshift.policy.rollout import rollout
from gearshift.policy.snapshot import PodView
from tests.unit.policy.build import pod, snapshot, starting


def step(*views: PodView) -> tuple[DeletePod, ...] | Hold | None:
    """What the rollout does with these pods."""
    return rollout(Fleet.of(snapshot(views)))


def names(result: tuple[DeletePod, ...] | Hold | None) -> list[str]:
    """Pods that are deleted."""
    assert isinstance(result, tuple), result
    assert all(action.reason == reasons.ROLLOUT for action in result)
    return [action.name for action in result]


def test_a_fleet_of_the_present_spec_needs_no_rollout() -> None:
    """No rollout."""
    assert step(pod(0), starting(1)) is None


def test_one_pod_goes_while_all_serve() -> None:
    """The lowest ordinal of the outdated ones."""
    assert names(step(pod(0), pod(1, revision="old"), pod(2, revision="old"))) == ["chat-1"]


def test_a_single_pod_is_replaced() -> None:
    """There is no other pod that could serve meanwhile."""
    assert names(step(pod(0, revision="old"))) == ["chat-0"]


@pytest.mark.parametrize(
    "other",
    [starting(0), pod(0, deleting=True), pod(0, phase=PodPhase.DRAINING), pod(0, phase=PodPhase.UNKNOWN)],
    ids=["starting", "deleting", "draining", "unknown"],
)
def test_it_waits_for_every_other_pod(other: PodView) -> None:
    """The hold names who is waited for."""
    result = step(other, pod(1, revision="old"), pod(2, revision="old"))
    assert isinstance(result, Hold)
    assert result.reason == reasons.ROLLOUT_WAITING
    assert "chat-0" in result.message


def test_outdated_pods_that_serve_nothing_go_at_once() -> None:
    """A spec that never became ready is left behind without waiting for it."""
    views = (starting(0, revision="old"), starting(1, revision="old", phase=PodPhase.FAILED), pod(2, revision="old"))
    assert names(step(*views)) == ["chat-0", "chat-1"]


def test_the_one_that_does_not_serve_goes_first() -> None:
    """It is ready but can't be asked, so it goes only because all others serve."""
    views = (pod(0, revision="old"), pod(1, revision="old", phase=PodPhase.UNKNOWN))
    assert names(step(*views)) == ["chat-1"]


def test_a_pod_in_transition_is_not_taken() -> None:
    """Its transition ends first."""
    assert isinstance(step(pod(0, revision="old", phase=PodPhase.SWITCHING)), Hold)
