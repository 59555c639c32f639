# SPDX-License-Identifier: Apache-2.0
"""Scale-down names the pod that goes."""

from gearshift.api.vocabulary import PodPhase, Role
from gearshift.policy.fleet import Fleet
from gearshift.policy.scaledown import scale_down
from gearshift.policy.snapshot import Snapshot
from tests.unit.policy.build import pod, pods, snapshot, spec, split, starting


def gone(state: Snapshot) -> list[str]:
    """Names of the pods that go."""
    return [action.name for action in scale_down(state, Fleet.of(state))]


def test_nobody_goes_at_the_target() -> None:
    """As many as asked for."""
    assert gone(snapshot((pod(0), pod(1)), spec(replicas=2))) == []


def test_the_least_loaded_goes() -> None:
    """Running and waiting requests count alike."""
    views = (pod(0, running=3), pod(1, running=1, waiting=1), pod(2, waiting=3))
    assert gone(snapshot(views, spec(replicas=2))) == ["chat-1"]


def test_the_highest_ordinal_goes_on_ties() -> None:
    """Low ordinals stay."""
    assert gone(snapshot((pod(0), pod(1), pod(2)), spec(replicas=1))) == ["chat-2"]


def test_the_role_above_its_target_gives() -> None:
    """Least load matters within that role only."""
    fleet = pods(3, 2)
    loaded = tuple(view if view.role is Role.DECODE else pod(view.ordinal, view.role, running=9) for view in fleet)
    assert gone(snapshot(loaded, split(2, 2))) == ["chat-2"]


def test_a_pod_in_transition_stays() -> None:
    """It will be one of the others."""
    views = (pod(0, running=5), pod(1, phase=PodPhase.DRAINING))
    assert gone(snapshot(views, spec(replicas=1))) == ["chat-0"]


def test_pods_that_are_not_ready_go_together() -> None:
    """They serve nothing; only then one that serves may go, at the next tick."""
    views = (pod(0), pod(1), starting(2), starting(3))
    assert gone(snapshot(views, spec(replicas=1))) == ["chat-3", "chat-2"]


def test_scale_to_zero_goes_pod_by_pod() -> None:
    """One serving pod a tick."""
    assert gone(snapshot((pod(0), pod(1)), spec(replicas=0))) == ["chat-1"]
