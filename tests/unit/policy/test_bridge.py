# SPDX-License-Identifier: Apache-2.0
"""Bridges: a warm pod stands in for one that starts, and goes back once that one serves."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from gearshift.api import reasons
from gearshift.api.v1alpha1.status import InferenceServiceStatus
from gearshift.api.vocabulary import BridgePhase, PodPhase, Role, TransitionKind, TransitionResult
from gearshift.policy import tuning
from gearshift.policy.bridge import bridge_status, bridges, wish
from gearshift.policy.conditionview import Observed
from gearshift.policy.decide import decide
from gearshift.policy.fleet import Fleet
from gearshift.policy.memory import fold, rebuild
from gearshift.policy.plan import Bridge, BridgeWish, Capacity, Memory, Plan, Seen, Startup, Transit
from gearshift.policy.snapshot import Ended, InFlight, Metrics, PodView, Reading, Snapshot
from gearshift.policy.statusview import Report, status
from tests.unit.policy.build import (
    LAYOUTS,
    NOW,
    UNKNOWN,
    both,
    metrics,
    pod,
    pods,
    seasoned,
    snapshot,
    spec,
    split,
    starting,
)

PREFILL, DECODE = Role.PREFILL, Role.DECODE
COLD = starting(9, PREFILL, created_at=NOW - 5)


def readings(hot: float | Reading = 3.0, cool: float | Reading = 0.0, **decode: float) -> Metrics:
    """TTFT p90 of prefill, of which 1.5 s is pressure 1; ITL p90 of decode, of which 50 ms is."""
    return both(metrics(PREFILL, ttft_p90=hot), metrics(DECODE, itl_p90=cool, **decode))


def state(views: Iterable[PodView] = (*pods(1, 3), COLD), read: Metrics | None = None, **changes: Any) -> Snapshot:
    """A service of two prefill and three decode pods; one prefill pod starts, and prefill is hot."""
    return snapshot(views, changes.pop("service", split(2, 3)), metrics=read or readings(), **changes)


def wished(given: Snapshot, memory: Memory | None = None) -> tuple[Role, Role, str] | str:
    """Donor, receiver and the pod that is awaited; else the reason of the Hold."""
    found = wish(given, memory or seasoned(), Fleet.of(given))
    if isinstance(found, BridgeWish):
        return found.donor, found.receiver, found.awaits_uid
    return found.reason


YES = (DECODE, PREFILL, "uid-9")
STEADY = reasons.STEADY


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (state(), YES),
        (state(pods(2, 3)), STEADY),
        (state(read=readings(1.34)), STEADY),
        (state(read=readings(1.36)), YES),
        (state((*pods(0, 3), COLD), read=both(metrics(DECODE, running=1))), YES),
        (state((*pods(0, 3), COLD), read=both(metrics(DECODE))), STEADY),
        (state((*pods(0, 3), COLD), read=both(metrics(DECODE, running=UNKNOWN))), reasons.METRICS_MISSING),
        (state((*pods(1, 1), COLD)), STEADY),
        (state(read=readings(cool=0.025)), YES),
        (state(read=readings(cool=0.026)), STEADY),
        (state(read=readings(UNKNOWN)), reasons.METRICS_MISSING),
        (state(read=readings(cool=UNKNOWN)), reasons.METRICS_MISSING),
        (state((*pods(1, 3), replace(COLD, revision="old"))), STEADY),
        (state((*pods(1, 3), replace(COLD, created_at=NOW - 46, since=NOW - 46))), STEADY),
        (state((*pods(1, 3), replace(COLD, phase=PodPhase.UNKNOWN))), STEADY),
        (state((*pods(1, 3), replace(COLD, role=DECODE))), STEADY),
        (state(service=split(2, 3, override={"role": "Decode", "until": "2100-01-01T00:00:00Z"})), STEADY),
    ],
    ids=[
        "hot, slack", "none starts", "just below hot", "just hot", "none serves",
        "none serves, nothing runs", "none serves, unknown", "one donor", "just slack",
        "just no slack", "receiver unknown", "donor unknown", "older spec", "nearly there", "was heard of before",
        "another role starts", "a human orders roles",
    ],
)  # fmt: skip
def test_wishes(given: Snapshot, expected: object) -> None:
    """The truth table of `wish`."""
    assert wished(given) == expected


def test_a_decode_pod_is_bridged_by_a_prefill_pod() -> None:
    """The other way round."""
    given = state((*pods(3, 1), starting(9, DECODE)), readings(0.0, 0.1), service=split(3, 2))
    assert wished(given) == (PREFILL, DECODE, "uid-9")


def test_the_usual_start_up_and_the_usual_change_say_whether_it_pays() -> None:
    """Of 100 s, 70 s have passed: 30 s are enough for changes of 7 s, and not for changes of 8 s."""
    given = state((*pods(1, 3), replace(COLD, created_at=NOW - 70, since=NOW - 70)))
    memory = seasoned(startups={"a": Startup("new", 100.0)})
    assert wished(given, memory) == YES
    for seconds, expected in ((7.0, YES), (8.0, STEADY)):
        change = Ended("chat-1", TransitionKind.ROLE, "Decode", "Prefill", TransitionResult.COMMITTED, NOW - 900, True)
        assert wished(replace(given, ended=(replace(change, seconds=seconds),)), memory) == expected


def test_demand_that_was_too_much_for_the_donors_left_keeps_them() -> None:
    """Three pods at 70 tokens/s leave two at 105; one saturated at 100."""
    given = state(read=readings(generation_tokens=210.0))
    assert wished(given, seasoned(capacity={"Decode/TP": Capacity(100.0, NOW - 60)})) == reasons.KNOWN_CAPACITY


def test_no_second_bridge_while_a_pod_is_on_its_way_or_for_the_same_pod() -> None:
    """One at a time, and one for each that starts."""
    flight = InFlight("t", "chat-3", TransitionKind.ROLE, "Prefill", NOW - 1)
    assert wished(state(in_flight=(flight,))) == STEADY
    for phase in BridgePhase:
        assert wished(state(), seasoned(bridges=(standing(phase=phase),))) == STEADY
    two = state((*pods(1, 3), COLD, starting(8, PREFILL, created_at=NOW - 5)))
    assert wished(two, seasoned(bridges=(standing(),))) == (DECODE, PREFILL, "uid-8")


def standing(**changes: Any) -> Bridge:
    """The bridge of `state`: chat-3 prefills."""
    base = Bridge("chat-3", "uid-3", DECODE, PREFILL, "chat-9", "uid-9", BridgePhase.STANDING)
    return replace(base, **changes)


WARM = replace(COLD, phase=PodPhase.SERVING, ready=True, since=NOW - 1)
BRIDGED = (pod(0, PREFILL), pod(1, DECODE), pod(2, DECODE), pod(3, PREFILL, epoch=1))


def test_a_bridge_is_made_at_once_and_needs_no_evidence() -> None:
    """Pressure alone would have to last for half a window."""
    given = state()
    plan = decide(given, fold(seasoned(), given))
    assert plan.actions == (Transit("chat-3", TransitionKind.ROLE, "Prefill", 0, reasons.BRIDGE),)
    assert plan.message == "pressure 2 on Prefill, 0 on Decode; chat-9 starts"


TWO_PREFILL = {"name": "Prefill", "replicas": 2}
THREE_DECODE = {"name": "Decode", "replicas": 3}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hold": True}, reasons.HUMAN_HOLD),
        ({"service": split(2, 3, policy={"actuation": "Advisory"})}, reasons.ADVISORY),
        ({"service": split(2, 3, policy={"actuation": "Approve"})}, reasons.AWAITING_APPROVAL),
        ({"service": spec(roles=[{**TWO_PREFILL, "max": 2}, THREE_DECODE])}, reasons.ROLE_CEILING),
        ({"service": spec(roles=[TWO_PREFILL, {**THREE_DECODE, "min": 3}])}, reasons.ROLE_FLOOR),
    ],
    ids=["hold", "Advisory", "Approve", "ceiling", "floor"],
)  # fmt: skip
def test_humans_and_bounds_keep_a_bridge_from_being_made(changes: dict[str, Any], reason: str) -> None:
    """As any other change of role."""
    given = state(**changes)
    plan = decide(given, fold(seasoned(), given))
    assert (plan.actions, plan.reason) == ((), reason)
    assert [each.reason for each in plan.proposal if isinstance(each, Transit)] == [reasons.BRIDGE]


@pytest.mark.parametrize(
    ("views", "read", "expected"),
    [
        ((*BRIDGED, COLD), readings(), ()),
        ((*BRIDGED, WARM), readings(0.0), ("chat-3", "Decode", reasons.BRIDGE_OVER)),
        ((*BRIDGED, WARM), readings(0.89), ("chat-3", "Decode", reasons.BRIDGE_OVER)),
        ((*BRIDGED, WARM), readings(0.91), ()),
        ((*BRIDGED, WARM), readings(UNKNOWN), ()),
    ],
    ids=["starts", "serves", "cool enough without it", "both are needed", "unknown"],
)
def test_a_bridge_goes_back(views: tuple[PodView, ...], read: Metrics, expected: tuple[str, ...]) -> None:
    """The truth table of `bridge_verdict`: the arrival is new evidence, so neither dwell nor cooldown keeps it."""
    given = state(views, read)
    memory = seasoned(bridges=(standing(),), transition_at={"chat-3": NOW - 1}, last_transition_at=NOW - 1)
    plan = decide(given, fold(memory, given))
    assert tuple(x for each in plan.actions if isinstance(each, Transit) for x in (each.pod, each.to, each.reason)) == (
        expected
    )


@pytest.mark.parametrize(
    ("bridge", "views", "expected"),
    [
        (standing(phase=BridgePhase.GOING), (*pods(1, 3), COLD), None),
        (standing(phase=BridgePhase.GOING), (*BRIDGED, COLD), BridgePhase.STANDING),
        (standing(), (*BRIDGED, COLD), BridgePhase.STANDING),
        (standing(), (*BRIDGED[:3], pod(3, PREFILL, phase=PodPhase.DRAINING), COLD), BridgePhase.STANDING),
        (standing(), (*BRIDGED, WARM), BridgePhase.STANDING),
        (standing(served_at=NOW - 299), (*BRIDGED, WARM), BridgePhase.STANDING),
        (standing(served_at=NOW - 301), (*BRIDGED, WARM), None),
        (standing(), BRIDGED, None),
        (standing(), (*BRIDGED, replace(COLD, uid="another")), None),
        (standing(), (*BRIDGED[:3], pod(3, PREFILL, uid="another"), COLD), None),
        (standing(), (*BRIDGED[:3], pod(3, Role.UNIFIED), COLD), None),
        (standing(), (*pods(1, 3), COLD), BridgePhase.RETURNED),
        (standing(), (*pods(1, 3), WARM), None),
        (standing(phase=BridgePhase.RETURNED), (*pods(1, 3), COLD), BridgePhase.RETURNED),
        (standing(phase=BridgePhase.RETURNED), (*pods(1, 3), WARM), None),
    ],
)
def test_what_becomes_of_a_bridge(bridge: Bridge, views: tuple[PodView, ...], expected: BridgePhase | None) -> None:
    """The truth table of `bridges`."""
    given = state(views)
    after = bridges(given, seasoned(bridges=(bridge,)), Fleet.of(given))
    assert [each.phase for each in after] == ([] if expected is None else [expected])


def test_a_human_who_orders_roles_ends_all_bridges() -> None:
    """What pods are is theirs to say."""
    ordered = split(2, 3, override={"role": "Decode", "until": "2100-01-01T00:00:00Z"})
    given = state((*BRIDGED, COLD), service=ordered)
    assert bridges(given, seasoned(bridges=(standing(),)), Fleet.of(given)) == ()


def test_an_order_that_shows_is_remembered_as_a_bridge() -> None:
    """On its way or there; another pod's change is none of it."""
    given = state()
    wanted = fold(seasoned(), given)
    flight = InFlight("t", "chat-3", TransitionKind.ROLE, "Prefill", NOW + 1)
    moving = (*pods(1, 2), pod(3, DECODE, phase=PodPhase.DRAINING), COLD)
    under_way = fold(wanted, replace(given, at=NOW + 2, pods=moving, in_flight=(flight,)))
    assert under_way.bridges == (standing(phase=BridgePhase.GOING),)
    assert under_way.bridge_wish is None
    there = fold(wanted, replace(given, at=NOW + 2, pods=(*BRIDGED, COLD)))
    assert there.bridges == (standing(),)
    other = fold(replace(wanted, seen={}), replace(given, at=NOW + 2, pods=(*BRIDGED, COLD)))
    assert other.bridges == ()
    late = fold(wanted, replace(given, at=NOW + 31, metrics=readings(0.0)))
    assert late.bridge_wish is None


def test_a_flip_that_was_no_bridge_is_never_one() -> None:
    """Pressure has moved a pod, and one of the role starts later."""
    memory = seasoned(seen={each.uid: Seen(each.role, LAYOUTS[0]) for each in pods(1, 3)})
    given = state((*BRIDGED, COLD))
    assert fold(memory, given).bridges == ()


NOBODY = Fleet.of(snapshot())


def test_an_ordered_bridge_is_told_at_once() -> None:
    """An operator that dies before the order shows leaves it to the next one."""
    given = state()
    memory = fold(seasoned(), given)
    told = status(given, decide(given, memory), InferenceServiceStatus(), Report(Observed(True), memory=memory))
    assert rebuild(NOW, told).bridges == (standing(phase=BridgePhase.GOING),)


def test_bridges_survive_a_restart_by_status() -> None:
    """The next leader gives back what the last one lent, after its first window."""
    told = InferenceServiceStatus(bridges=bridge_status(seasoned(bridges=(standing(),)), Plan("p"), NOBODY))
    again = InferenceServiceStatus.model_validate(told.dump())
    memory = rebuild(NOW - tuning.BRIDGE_LEAST_SECONDS, again)
    assert memory.bridges == (standing(),)
    given = state((*BRIDGED, WARM), readings(0.0))
    assert decide(given, fold(memory, given)).reason == reasons.RESTART_HOLD
    later = replace(given, at=NOW + 30)
    assert decide(later, fold(memory, later)).reason == reasons.BRIDGE_OVER
