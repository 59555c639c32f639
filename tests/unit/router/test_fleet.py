# SPDX-License-Identifier: Apache-2.0
"""What a router believes of its pods, from endpoints, states, silence and failed connections."""

import pytest

from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.api.wire import Load, PodState
from gearshift.router import fleet as module
from gearshift.router.endpoints import Endpoint
from gearshift.router.fleet import Fleet, Pod
from gearshift.scheduling.choose import Trust


class Clock:
    """Monotonic time that a test moves."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def endpoint(
    name: str = "a", *, ip: str = "10.0.0.1", ready: bool | None = None, terminating: bool = False
) -> Endpoint:
    return Endpoint(name, f"uid-{name}", ip, ready, terminating)


def state(
    sequence: int = 1, *, admitting: bool = True, model: str = "m", port: int = 8000, running: int = 0
) -> PodState:
    return PodState(
        pod="a",
        uid="uid-a",
        sequence=sequence,
        epoch=0,
        phase=PodPhase.SERVING if admitting else PodPhase.DRAINING,
        admitting=admitting,
        role=Role.UNIFIED,
        layout=Layout.TP,
        layouts=[Layout.TP],
        engine_port=port,
        model=model,
        load=Load(running=running, waiting=1),
    )


@pytest.fixture
def fleet(clock: Clock) -> Fleet:
    made = Fleet("m")
    made.set_endpoints([endpoint()])
    return made


@pytest.fixture
def pod(fleet: Fleet) -> Pod:
    return fleet.pods["uid-a"]


def trust(pod: Pod) -> Trust:
    return pod.trust


def test_a_pod_serves_from_its_first_state_on(fleet: Fleet, pod: Pod) -> None:
    assert fleet.serving("m") == []
    assert fleet.apply(pod, state())
    assert fleet.serving("m") == [pod]
    assert (pod.trust, pod.reported) == (Trust.FRESH, 1)


def test_only_a_new_sequence_is_to_be_acknowledged(fleet: Fleet, pod: Pod) -> None:
    fleet.apply(pod, state())
    assert not fleet.apply(pod, state(running=4))
    assert pod.reported == 5
    assert fleet.apply(pod, state(2, admitting=False))
    assert fleet.serving("m") == []
    assert fleet.apply(pod, state(1))  # a sidecar that has started to count anew


def test_a_lost_stream_lowers_trust_more_and_more(fleet: Fleet, pod: Pod, clock: Clock) -> None:
    fleet.apply(pod, state())
    fleet.lose(pod)
    assert trust(pod) is Trust.STALE
    clock.now += module.HEARD_SECONDS + 1
    fleet.refresh()
    assert trust(pod) is Trust.UNHEARD
    fleet.set_endpoints([endpoint(ready=False)])
    assert trust(pod) is Trust.SUSPECT
    fleet.apply(pod, state())
    assert trust(pod) is Trust.FRESH


def test_a_pod_that_is_unheard_for_long_serves_only_where_no_other_does(fleet: Fleet, pod: Pod, clock: Clock) -> None:
    fleet.set_endpoints([endpoint(), endpoint("b")])
    other = fleet.pods["uid-b"]
    for each in (pod, other):
        fleet.apply(each, state())
        fleet.lose(each)
    assert fleet.serving("m") == [pod, other]
    clock.now += 3600
    fleet.refresh()
    assert fleet.serving("m") == [pod, other]
    fleet.apply(other, state())
    fleet.refresh()
    assert fleet.serving("m") == [other]
    assert fleet.serving("m", without=[other]) == [pod]
    fleet.apply(other, state(2, admitting=False))
    assert fleet.serving("m") == [pod]


def test_a_failed_connection_is_forgotten_in_time(fleet: Fleet, pod: Pod, clock: Clock) -> None:
    fleet.apply(pod, state())
    fleet.suspect(pod)
    fleet.apply(pod, state())
    assert trust(pod) is Trust.SUSPECT
    clock.now += module.SUSPECT_SECONDS
    fleet.apply(pod, state())
    assert trust(pod) is Trust.FRESH


def test_a_pod_with_another_address_is_another_pod(fleet: Fleet, pod: Pod) -> None:
    fleet.apply(pod, state())
    came, gone = fleet.set_endpoints([endpoint(ip="10.0.0.9")])
    assert (gone, len(came), fleet.serving("m")) == ([pod], 1, [])


def test_the_engine_address_follows_its_port(fleet: Fleet, pod: Pod) -> None:
    fleet.apply(pod, state())
    assert str(pod.url("/v1/completions")) == "http://10.0.0.1:8000/v1/completions"
    fleet.apply(pod, state(2, port=8001))
    assert str(pod.url("/v1/completions")) == "http://10.0.0.1:8001/v1/completions"


def test_an_ipv6_address_is_bracketed(clock: Clock) -> None:
    fleet = Fleet("m")
    came, _ = fleet.set_endpoints([endpoint(ip="fd00::1")])
    fleet.apply(came[0], state())
    assert str(came[0].url("/v1/completions")) == "http://[fd00::1]:8000/v1/completions"


def test_a_renamed_model_is_served_under_both_names(fleet: Fleet, pod: Pod) -> None:
    fleet.apply(pod, state(model="old"))
    assert (fleet.models(), fleet.serving("old"), fleet.serving("m")) == (["m", "old"], [pod], [])
    assert fleet.knows("m")
    assert fleet.knows("old")
    assert not fleet.knows("new")
    assert fleet.why_none("m") == "none of its 1 pods admits requests (none serves this model)"


def test_names_are_open_until_pods_are_listed_and_heard(clock: Clock) -> None:
    fleet = Fleet("m")
    clock.now += 3600
    assert fleet.settling()
    fleet.set_endpoints([])
    assert not fleet.settling()
    came, _ = fleet.set_endpoints([endpoint()])
    assert fleet.settling()
    fleet.apply(came[0], state(model="old"))
    assert not fleet.settling()
    fleet.set_endpoints([endpoint(), endpoint("b")])
    assert fleet.settling()
    clock.now += module.SETTLING_SECONDS
    assert not fleet.settling()


def test_the_count_of_a_draining_pod_is_due_at_every_change(fleet: Fleet, pod: Pod) -> None:
    fleet.apply(pod, state())
    pod.begin()
    assert not pod.ack_due.is_set()
    fleet.apply(pod, state(2, admitting=False))
    pod.end()
    assert pod.ack_due.is_set()


def test_the_reason_for_no_pod_counts_phases(fleet: Fleet, pod: Pod) -> None:
    fleet.apply(pod, state(admitting=False))
    fleet.set_endpoints([endpoint(), endpoint("b"), endpoint("c", terminating=True)])
    assert (
        fleet.why_none("m") == "none of its 3 pods admits requests (1 Draining, 1 Terminating, 1 without a known state)"
    )
