# SPDX-License-Identifier: Apache-2.0
"""Pods that die, lie, hang or fall silent in the middle of a transition: what was ordered comes true all the same."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from gearshift.api.vocabulary import PodPhase
from gscluster.audit import AuditLog
from gscluster.fast import FastCluster
from tests.functional.operator.oracle import as_the_spec_says, settles, stops_writing
from tests.functional.operator.sidecar import Sidecar
from tests.functional.operator.test_transitions import LAYOUTS, history, ordered
from tests.functional.operator.world import Operator, Space, operator, until

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("leader")]

HASTY = {"drainTimeout": "1s", "cooldown": "1s", "window": "5s", "dwell": "1s"}
PHASES = [PodPhase.DRAINING, PodPhase.SWITCHING, PodPhase.VERIFYING, PodPhase.PUBLISHING, PodPhase.ROLLING_BACK]


@pytest.fixture(scope="module")
def leader(cluster: FastCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """An operator that gives a transition three seconds beyond its drain."""
    with operator(cluster, tmp_path_factory.mktemp("operator"), transition_grace_seconds="3") as one:
        yield one


@pytest.fixture
def spaces(cluster: FastCluster, space: Space) -> Iterator[list[Space]]:
    """A namespace for each phase."""
    more = [Space(cluster, f"{space.name}-{phase.value.lower()}") for phase in PHASES[1:]]
    yield [space, *more]
    for each in more:
        each.kubelet.close()
        cluster.kubectl("delete", "gsvc", "--all", "-n", each.name, "--wait=false")


def order(space: Space) -> None:
    """A human orders layout DP."""
    space.apply(**{**ordered("DP"), "policy": HASTY})


def results(space: Space) -> list[tuple[str, str]]:
    """Result and reason of the ended transitions, oldest first."""
    return [(item["result"], item["reason"]) for item in reversed(history(space))]


def begun(space: Space) -> tuple[Sidecar, str]:
    """A service of one pod whose sidecar is to act as the test wants; also the pod's uid."""
    if not space.items("gsvc"):
        space.apply(**LAYOUTS)
    (sidecar,) = space.serve(1).values()
    return sidecar, sidecar.state.uid


def uids(space: Space) -> list[str]:
    """Of the pods that exist."""
    return [pod["metadata"]["uid"] for pod in space.kubelet.pods()]


def done(space: Space) -> bool:
    """The one pod has the layout that was ordered."""
    return as_the_spec_says(space, 1, "DP")


def test_a_pod_that_dies_in_any_phase(spaces: list[Space]) -> None:
    for space in spaces:
        space.apply(**LAYOUTS)
    pods = [begun(space) for space in spaces]
    for space, (sidecar, _) in zip(spaces, pods, strict=True):
        sidecar.hold.set()
        order(space)
    for space, (sidecar, uid), phase in zip(spaces, pods, PHASES, strict=True):
        bring_to(space, sidecar, phase)
        space.kubelet.lose(uid)
    settles(spaces, done, "the new pod to have the layout", 60)
    for space, (_, uid) in zip(spaces, pods, strict=True):
        assert results(space) == [("Failed", "PodLost"), ("Committed", "Verified")]
        assert uid not in uids(space)


def bring_to(space: Space, sidecar: Sidecar, phase: PodPhase) -> None:
    """Let the pod reach a phase of the transition that has been ordered, and stay in it."""
    until(lambda: sidecar.state.transition, "the order", 120)
    sidecar.reach(phase)
    until(lambda: shown_phase(space) == phase, f"status to say {phase}")


def shown_phase(space: Space) -> str:
    """Phase of the running transition in status."""
    shown: dict[str, Any] = space.status().get("transition", {})
    return str(shown.get("phase", ""))


def test_a_sidecar_that_says_yes_and_does_nothing(space: Space) -> None:
    sidecar, uid = begun(space)
    sidecar.pretends = True
    order(space)
    until(lambda: results(space) == [("Failed", "TransitionForgotten")], "the failure to be told", 120)
    until(lambda: len(results(space)) == 2, "another try", 120)
    assert len({each.id for each in sidecar.orders}) == len(sidecar.orders) == 2
    second, first = history(space)
    pause = datetime.fromisoformat(second["startedAt"]) - datetime.fromisoformat(first["finishedAt"])
    assert pause >= timedelta(seconds=1)  # two, of which the records keep whole ones
    sidecar.pretends = False
    settles([space], done, "a later try to succeed", 60)
    assert results(space)[-1] == ("Committed", "Verified")
    assert uids(space) == [uid]


def test_a_sidecar_that_never_comes_to_an_end(space: Space) -> None:
    sidecar, uid = begun(space)
    sidecar.hold.set()
    order(space)
    until(lambda: ("Failed", "TransitionOverdue") in results(space), "the failure to be told", 120)
    until(lambda: uid not in uids(space), "the pod to go")
    settles([space], done, "a new pod to have the layout", 60)
    assert results(space) == [("Failed", "TransitionOverdue"), ("Committed", "Verified")]


def test_a_sidecar_that_falls_silent_and_comes_back(space: Space) -> None:
    sidecar, uid = begun(space)
    sidecar.hold.set()
    order(space)
    until(lambda: space.is_true("Shifting"), "the transition to run", 120)
    space.kubelet.silence(uid)
    log = AuditLog(space.cluster.audit_log)
    log.mark()
    until(lambda: results(space) == [("Failed", "TransitionOverdue")], "the failure to be told", 120)
    stops_writing([space], log)
    assert uids(space) == [uid]
    sidecar.hold.clear()
    space.kubelet.revive(sidecar)
    settles([space], done, "the layout", 60)
    assert results(space) == [("Committed", "Verified")]
    assert len(sidecar.orders) == 1
