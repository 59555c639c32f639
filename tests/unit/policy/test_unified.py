# SPDX-License-Identifier: Apache-2.0
"""Whether pods are better Unified, or split into Prefill and Decode."""

from dataclasses import astuple
from typing import Any

import pytest

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, Role, TransitionKind
from gearshift.policy.capacity import learn
from gearshift.policy.carry import Load, Needed, load, most_split, most_unified, needed
from gearshift.policy.decide import decide
from gearshift.policy.fleet import Fleet
from gearshift.policy.memory import fold
from gearshift.policy.plan import Capacity, Hold, Memory, Move, Transit
from gearshift.policy.rates import EngineRates
from gearshift.policy.role import Want
from gearshift.policy.snapshot import InFlight, Metrics, PodView, Reading, Snapshot
from gearshift.policy.unified import Case, slow_transfers_at, step, unified_verdict, want
from tests.unit.policy.build import NOW, UNKNOWN, both, metrics, pod, seasoned, snapshot, spec, split, starting

UNIFIED, PREFILL, DECODE = Role.UNIFIED, Role.PREFILL, Role.DECODE
RATES = dict.fromkeys(Layout, EngineRates(10_000.0, 0.02, 0.0002, 0.5))
"""A Unified pod may be busy for half of its time (ITL 50 ms), a Prefill pod for 70 %, a Decode pod for half of it."""


def service(unified: int = 0, prefill: int = 2, decode: int = 2, **fields: Any) -> InferenceServiceSpec:
    """A service that may be split or Unified as it likes."""
    counts = {"Unified": unified, "Prefill": prefill, "Decode": decode}
    return spec(roles=[{"name": name, "replicas": count, "min": 0} for name, count in counts.items()], **fields)


def fleet(unified: int, prefill: int, decode: int) -> tuple[PodView, ...]:
    """Pods by role."""
    roles = [UNIFIED] * unified + [PREFILL] * prefill + [DECODE] * decode
    return tuple(pod(ordinal, role) for ordinal, role in enumerate(roles))


def readings(
    prompts: float | Reading = 0.0, tokens: float = 0.0, itl: float | Reading = 0.02, ttft: float = 0.1
) -> Metrics:
    """Load, all of it told by the Unified scope, and latencies of that scope and of the service."""
    return both(
        metrics(None, ttft_p90=ttft, itl_p90=0.02),
        metrics(UNIFIED, prompt_tokens=prompts, generation_tokens=tokens, itl_p90=itl),
        metrics(PREFILL),
        metrics(DECODE),
    )


def given(
    pods: tuple[int, int, int], read: Metrics, asked: InferenceServiceSpec | None = None, **more: Any
) -> Snapshot:
    """A service at `NOW` with so many Unified, Prefill and Decode pods."""
    return snapshot(more.pop("views", fleet(*pods)), asked or service(), metrics=read, **{"rates": RATES, **more})


def wanted(state: Snapshot, memory: Memory | None = None) -> tuple[Role | None, Role | None, str] | str:
    """Donor, receiver and reason; else the reason of the Hold."""
    found = want(state, memory or seasoned(), Fleet.of(state))
    if found.hold is not None:
        return found.hold.reason
    return found.donor, found.receiver, found.reason


# Work per second, in pods: prompts / 10,000 and tokens / 5,000.
READING = readings(12_000, 1500)  # 4 pods: Unified 1.33 times (of 1.5 each half), 3:1 split 1.67 times
WRITING = readings(1000, 7000)  # Unified 1.33, split 1.07
EASY = readings(1000, 1000)  # Unified 6.67, 1:3 split 7
EVEN = readings(6000, 4000)  # Unified 1.43, split 1.25
STEADY, PAYS, LOSES = reasons.STEADY, reasons.DISAGGREGATION_PAYS, reasons.DISAGGREGATION_LOSES
DISTURBED = {"itl": 0.06}


@pytest.mark.parametrize(
    ("state", "memory", "expected"),
    [
        (given((4, 0, 0), READING, split(2, 2)), None, STEADY),
        (given((4, 0, 0), readings(UNKNOWN, 1)), None, reasons.METRICS_MISSING),
        (given((4, 0, 0), readings(1, 1, UNKNOWN)), None, reasons.METRICS_MISSING),
        (given((4, 0, 0), READING, rates={}), None, reasons.RATES_UNKNOWN),
        (given((4, 0, 0), readings()), None, STEADY),
        (given((4, 0, 0), READING, views=(*fleet(4, 0, 0), starting(4))), None, STEADY),
        (given((5, 0, 0), readings(7500, 3750, **DISTURBED)), None, (UNIFIED, DECODE, reasons.INTERFERENCE)),
        (given((5, 0, 0), readings(7500, 3750, **DISTURBED)), seasoned(slow_transfers_at=NOW), STEADY),
        (given((4, 0, 0), readings(1000, 7000, **DISTURBED)), None, STEADY),
        (given((2, 0, 0), readings(3000, 3500, **DISTURBED)), None, STEADY),
        (given((4, 0, 0), readings(11_000, 5500, **DISTURBED)), None, STEADY),
        (given((4, 0, 0), readings(18_000, 2250, **DISTURBED)), None, (UNIFIED, PREFILL, reasons.INTERFERENCE)),
        (given((1, 2, 1), READING), seasoned(slow_transfers_at=NOW - 1799), (PREFILL, UNIFIED, reasons.SLOW_TRANSFERS)),
        (given((1, 2, 1), READING), seasoned(slow_transfers_at=NOW - 1801), (UNIFIED, PREFILL, PAYS)),
        (given((1, 1, 2), WRITING), None, (DECODE, UNIFIED, LOSES)),
        (given((1, 1, 2), EASY), None, (DECODE, UNIFIED, LOSES)),
        (given((1, 1, 1), EASY), None, STEADY),
        (given((1, 1, 2), readings(1000, 1000, ttft=1.0)), None, STEADY),
        (given((1, 1, 2), EASY), seasoned(capacity={"Unified/TP": Capacity(800.0, NOW)}), STEADY),
        (given((1, 1, 2), EASY), seasoned(capacity={"Unified/TP": Capacity(9000.0, NOW)}), STEADY),
        (given((1, 1, 2), WRITING), seasoned(capacity={"Unified/TP": Capacity(3000.0, NOW)}), STEADY),
        (given((1, 1, 2), WRITING), seasoned(capacity={"Unified/TP": Capacity(3400.0, NOW)}), (DECODE, UNIFIED, LOSES)),
        (given((4, 0, 0), READING), None, (UNIFIED, PREFILL, PAYS)),
        (given((4, 0, 0), EVEN), None, STEADY),
        (given((3, 1, 0), EVEN), None, (PREFILL, UNIFIED, LOSES)),
        (given((3, 1, 0), readings(10_000, 2500)), None, (UNIFIED, DECODE, PAYS)),
        (given((3, 0, 1), readings(10_000, 2500)), None, (UNIFIED, PREFILL, PAYS)),
    ],
    ids=[
        "not all roles", "load unknown", "ITL unknown", "rates unknown", "nothing asked", "a pod starts", "disturbed",
        "disturbed, slow", "disturbed by tokens", "disturbed, Unified carries more", "too much for both",
        "too much for Unified", "slow", "slow long ago",
        "lopsided",
        "easy", "too few to be easy", "easy by the model only", "easy, but full", "easy, but disturbed lately",
        "lopsided, but full", "lopsided, not full", "split pays",
        "in between", "half a pair", "half a pair, split is as good", "the other half",
    ],
)  # fmt: skip
def test_wants(state: Snapshot, memory: Memory | None, expected: object) -> None:
    """The truth table of `want`."""
    assert wanted(state, memory) == expected


def case(
    now: tuple[int, int, int], unified: tuple[int, int, int], split_: tuple[int, int, int], **changes: Any
) -> Case:
    """A case whose load needs one Unified pod, or half a Prefill and half a Decode one."""
    start, joined, parted = (
        dict(zip((UNIFIED, PREFILL, DECODE), pods, strict=True)) for pods in (now, unified, split_)
    )
    flags = {"disturbed": False, "lately": False, "full": False, "slow": False, "calm": True}
    return Case(start, joined, parted, changes.pop("needed", Needed(1.0, 0.5, 0.5)), **{**flags, **changes})


@pytest.mark.parametrize(
    ("now", "load_", "expected"),
    [
        ((4, 0, 0), 1.0, True),
        ((4, 0, 0), 3.9, True),
        ((3, 0, 0), 1.0, False),
        ((3, 0, 0), 0.8, True),
        ((2, 0, 0), 1.0, True),
        ((2, 1, 0), 4.0, True),
        ((1, 1, 0), 4.0, True),
    ],
    ids=[
        "half remain", "half remain, overloaded", "a third remains", "a third is enough", "two take turns",
        "the second of a pair", "the last Unified pod",
    ],
)  # fmt: skip
def test_enough_is_carried_while_a_pair_is_made(now: tuple[int, int, int], load_: float, expected: bool) -> None:
    """The truth table of `step`: the first of a pair serves nobody until the second has come."""
    needed_ = Needed(load_, load_ / 2, load_ / 2)
    receiver = DECODE if now[1] else PREFILL
    found = step(case(now, (4, 0, 0), (0, 2, 2), needed=needed_), "Test", UNIFIED, receiver)
    assert (found.receiver is receiver) is expected
    assert expected or (found.hold is not None and found.hold.reason == reasons.CAPACITY_KEPT)


def test_a_step_without_a_pod_to_move_is_none() -> None:
    """All are as wanted."""
    assert step(case((4, 0, 0), (4, 0, 0), (0, 2, 2)), "Test", None, None).hold == Hold(reasons.STEADY)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ((0, 0, 0), 0.0), ((2, 0, 0), 1.0), ((0, 2, 1), 2.0), ((0, 1, 2), 4.0), ((2, 1, 2), 5.0), ((2, 1, 0), 1.0),
        ((0, 3, 0), 1.5), ((0, 0, 3), 1.5),
    ],
)  # fmt: skip
def test_what_a_division_carries(pods: tuple[int, int, int], expected: float) -> None:
    """The truth table of `Needed.carried`, for a load of 2 Unified pods, a quarter Prefill and half a Decode one."""
    needed_ = Needed(2.0, 0.25, 0.5)
    assert needed_.carried(dict(zip((UNIFIED, PREFILL, DECODE), pods, strict=True))) == expected


@pytest.mark.parametrize(
    ("roles", "unified", "split_"),
    [
        ([{"min": 0}, {"min": 0}, {"min": 0}], (6, 0, 0), (0, 3, 3)),
        ([{"min": 1}, {"min": 1}, {"min": 2}], (3, 1, 2), (1, 2, 3)),
        ([{"min": 0, "max": 2}, {"min": 0}, {"min": 0}], (2, 2, 2), (0, 3, 3)),
        ([{"min": 0}, {"min": 0, "max": 1}, {"min": 0, "max": 2}], (6, 0, 0), (3, 1, 2)),
    ],
)
def test_divisions_keep_floors_and_ceilings(
    roles: list[dict[str, int]], unified: tuple[int, int, int], split_: tuple[int, int, int]
) -> None:
    """As far as the bounds let the pods go."""
    names = ("Unified", "Prefill", "Decode")
    asked = spec(roles=[{"name": n, "replicas": r["min"], **r} for n, r in zip(names, roles, strict=True)])
    even, now = Needed(1.0, 1.0, 1.0), {UNIFIED: 2, PREFILL: 2, DECODE: 2}
    for found, expected in ((most_unified(asked, now, even), unified), (most_split(asked, now, even), split_)):
        assert found is not None
        assert tuple(found[role] for role in (UNIFIED, PREFILL, DECODE)) == expected


def test_without_a_pod_for_each_there_is_no_split() -> None:
    """One pod can't be two."""
    assert most_split(service(), {UNIFIED: 1}, Needed(1.0, 1.0, 1.0)) is None


def test_load_is_told_by_the_roles_that_serve_it() -> None:
    """Prompts of Decode pods came with their KV caches; what the prefix cache holds is not computed."""
    read = both(
        metrics(UNIFIED, prompt_tokens=100, generation_tokens=10),
        metrics(PREFILL, prompt_tokens=1000, generation_tokens=5, prefix_hits=0.25),
        metrics(DECODE, prompt_tokens=1000, generation_tokens=70),
    )
    state = given((1, 1, 1), read)
    assert load(state, Fleet.of(state)) == Load(850.0, 80.0, 1180.0)


def test_pods_needed_by_the_rates_of_each_roles_layout() -> None:
    """A role with a layout of its own has the rates of that layout."""
    asked = spec(roles=[{"name": "Unified", "min": 0}, {"name": "Prefill", "layout": "DP"}, {"name": "Decode"}])
    rates = {**RATES, Layout.DP: EngineRates(20_000.0, 0.02, 0.0002, 0.5)}
    state = given((1, 1, 1), readings(), asked, rates=rates)
    found = needed(state, Fleet.of(state), Load(14_000.0, 1000.0, 0.0))
    assert isinstance(found, Needed)
    assert astuple(found) == pytest.approx((3.2, 1.0, 0.4, 1.4 / 1.6))


@pytest.mark.parametrize(
    ("waiting", "requests", "expected"),
    [(3.0, 4.0, NOW), (2.9, 4.0, 7.0), (UNKNOWN, 4.0, 7.0), (3.0, UNKNOWN, 7.0), (3.0, 0.0, 7.0)],
)
def test_slow_transfers(waiting: float | Reading, requests: float | Reading, expected: float) -> None:
    """The truth table of `slow_transfers_at`: TTFT may take 1.5 s."""
    read = both(metrics(DECODE, transfers=waiting, requests=requests))
    assert slow_transfers_at(given((0, 2, 2), read), seasoned(slow_transfers_at=7.0)) == expected


def test_slow_transfers_make_pods_unified() -> None:
    """From readings over memory to the order, after two windows."""
    read = both(
        metrics(None, ttft_p90=1.0, itl_p90=0.02),
        metrics(PREFILL, prompt_tokens=9000),
        metrics(DECODE, generation_tokens=1000, transfers=9.0, requests=4.0),
    )
    state = given((0, 2, 2), read, service(replicas=4))
    plan = decide(state, fold(seasoned("Role:Unified"), state))
    assert [(each.to, each.reason) for each in plan.actions if isinstance(each, Transit)] == [
        ("Unified", reasons.SLOW_TRANSFERS)
    ]
    short = fold(seasoned(evidence_since={"Role:Unified": NOW - 59}), state)
    assert decide(state, short).reason == reasons.EVIDENCE_SHORT


def test_the_model_must_speak_for_longer_than_what_is_measured() -> None:
    """Four windows, and two for what is measured and for a pair that lacks its half."""
    for state, windows in (
        (given((1, 1, 2), WRITING), 4.0),
        (given((5, 0, 0), readings(7500, 3750, **DISTURBED)), 2.0),
        (given((3, 1, 0), EVEN), 2.0),
    ):
        assert unified_verdict(state, seasoned(), Fleet.of(state)).windows == windows


def test_both_halves_of_a_pair_gather_evidence_together() -> None:
    """So that the second follows the first as soon as the service has settled."""
    for pods in ((4, 0, 0), (3, 1, 0)):
        state = given(pods, READING)
        assert fold(seasoned("Role:Split"), state).evidence_since["Role:Split"] < NOW


def test_a_pod_on_its_way_counts_where_it_goes() -> None:
    """So that what is wanted stays wanted while it moves."""
    flight = InFlight("t", "chat-0", TransitionKind.ROLE, "Prefill", NOW - 1)
    state = given((4, 0, 0), READING, in_flight=(flight,))
    assert wanted(state) == (UNIFIED, DECODE, PAYS)


def test_what_disturbed_unified_pods_is_remembered() -> None:
    """Tokens per second and pod, prompts included; pods split by it do not come back to it."""
    state = given((5, 0, 0), readings(7500, 3750, **DISTURBED))
    assert learn(state, seasoned(), Fleet.of(state))["Unified/TP"] == Capacity(2250.0, NOW)
    calm = given((5, 0, 0), readings(7500, 3750))
    assert "Unified/TP" not in learn(calm, seasoned(), Fleet.of(calm))


@pytest.mark.parametrize(
    ("move", "held"),
    [
        (Move(NOW - 60, "chat-3", TransitionKind.ROLE, "Prefill", "Unified"), True),
        (Move(NOW - 60, "chat-3", TransitionKind.ROLE, "Decode", "Unified"), True),
        (Move(NOW - 60, "chat-3", TransitionKind.ROLE, "Unified", "Decode"), False),
        (Move(NOW - 121, "chat-3", TransitionKind.ROLE, "Prefill", "Unified"), False),
    ],
)
def test_the_way_to_unified_is_not_undone_on_old_evidence(move: Move, held: bool) -> None:
    """Whichever of the two roles a pod came from, and goes to."""
    state = given((4, 0, 0), READING, service(replicas=4))
    plan = decide(state, fold(seasoned("Role:Split", moves=(move,)), state))
    assert (plan.reason == reasons.UNDOES) is held
    assert bool(plan.actions) is not held


def test_unknown_rates_are_told_and_keep_pressure_from_nothing() -> None:
    """A flip between Prefill and Decode needs no model."""
    hot = both(metrics(PREFILL, ttft_p90=3.0), metrics(DECODE))
    cool = both(metrics(PREFILL), metrics(DECODE))
    for read, reason in ((hot, reasons.PREFILL_PRESSURE), (cool, reasons.RATES_UNKNOWN)):
        state = given((0, 2, 2), read, service(replicas=4), rates={})
        assert decide(state, fold(seasoned("Role:Prefill"), state)).reason == reason


def test_a_fleet_of_unified_pods_needs_no_readings_of_roles_that_have_no_pod() -> None:
    """Nobody prefills for others, so nobody misses it."""
    state = given((4, 0, 0), EVEN, service(replicas=4))
    assert decide(state, fold(seasoned(), state)).reason == reasons.STEADY


def test_wants_carry_their_numbers() -> None:
    """For people."""
    state = given((4, 0, 0), READING)
    found = want(state, seasoned(), Fleet.of(state))
    assert isinstance(found, Want)
    assert found.inputs == {"unifiedCarries": "1.333x", "splitCarries": "1.667x"}
    assert found.message == "pods carry 1.333 times the load as Unified ones, 1.667 times as split ones"


@pytest.mark.parametrize("pods", [2, 3, 5, 8, 13])
@pytest.mark.parametrize(("prefill", "decode"), [(1.0, 1.0), (3.0, 1.0), (0.1, 5.0), (0.0, 2.0), (2.0, 0.0)])
def test_the_most_split_division_carries_the_most(pods: int, prefill: float, decode: float) -> None:
    """Of all pairs of numbers."""
    needed_ = Needed(1.0, prefill, decode)
    found = most_split(service(), {UNIFIED: pods}, needed_)
    assert found is not None
    every = [{PREFILL: n, DECODE: pods - n} for n in range(1, pods)]
    assert needed_.carried(found) == max(needed_.carried(each) for each in every)
