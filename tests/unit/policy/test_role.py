# SPDX-License-Identifier: Apache-2.0
"""Which pods prefill and which decode."""

import pytest

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Role
from gearshift.policy.bounds import Mend, broken_bound
from gearshift.policy.capacity import learn
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Capacity, Hold, Memory
from gearshift.policy.pressure import Pressure, decode_pressure, prefill_pressure
from gearshift.policy.role import role_verdict, want
from gearshift.policy.roles import roles_verdicts
from gearshift.policy.snapshot import PodView, Reading, Snapshot
from gearshift.policy.verdict import STEADY, Source
from tests.unit.policy.build import NOW, UNKNOWN, both, metrics, pod, pods, seasoned, snapshot, spec, split

PREFILL, DECODE = Role.PREFILL, Role.DECODE
Values = dict[str, float | Reading]


def state(prefill: int, decode: int, on_prefill: Values | None = None, on_decode: Values | None = None) -> Snapshot:
    """A service with roles split; sums are given per pod."""
    readings = both(
        metrics(PREFILL, **_times(prefill, on_prefill or {})), metrics(DECODE, **_times(decode, on_decode or {}))
    )
    return snapshot(pods(prefill, decode), split(prefill, decode), metrics=readings)


def _times(count: int, values: Values) -> Values:
    sums = ("waiting", "running", "prompt_tokens", "generation_tokens")
    return {
        name: value * count if name in sums and not isinstance(value, Reading) else value
        for name, value in values.items()
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, 0.0),
        ({"waiting": 4}, 1.0),
        ({"ttft_p90": 0.75}, 0.5),
        ({"waiting": 2, "ttft_p90": 3.0}, 2.0),
        ({"waiting": 4000}, 10.0),
    ],
)
def test_prefill_pressure(values: Values, expected: float) -> None:
    """Queue per pod and TTFT against its objective, capped."""
    for count in (1, 5):
        given = state(count, 1, values)
        pressure = prefill_pressure(given, Fleet.of(given))
        assert isinstance(pressure, Pressure)
        assert pressure.value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, 0.0),
        ({"running": 100}, 0.0),
        ({"itl_p90": 0.025}, 0.5),
        ({"kv_usage": 0.9}, 1.0),
        ({"waiting": 8}, 2.0),
        ({"itl_p90": 0.1, "kv_usage": 0.45, "waiting": 1}, 2.0),
        ({"itl_p90": 60.0}, 10.0),
    ],
)
def test_decode_pressure(values: Values, expected: float) -> None:
    """ITL against its objective, KV use and queue per pod, capped."""
    for count in (1, 5):
        given = state(1, count, None, values)
        pressure = decode_pressure(given, Fleet.of(given))
        assert isinstance(pressure, Pressure)
        assert pressure.value == pytest.approx(expected)


def flip(given: Snapshot, memory: Memory | None = None) -> tuple[Role | None, Role | None]:
    """Donor and receiver."""
    wanted = want(given, memory or seasoned(), Fleet.of(given))
    return wanted.donor, wanted.receiver


HOT: Values = {"ttft_p90": 3.0}  # pressure 2
HOT_DECODE: Values = {"itl_p90": 0.1}  # pressure 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (state(2, 2, HOT), (DECODE, PREFILL)),
        (state(2, 2, None, HOT_DECODE), (PREFILL, DECODE)),
        (state(2, 2), (None, None)),
        (state(2, 2, HOT, HOT_DECODE), (None, None)),
        (state(2, 2, {"ttft_p90": 1.34}), (None, None)),
        (state(2, 2, {"ttft_p90": 1.36}), (DECODE, PREFILL)),
        (state(2, 1, HOT), (None, None)),
        (state(1, 2, HOT, {"itl_p90": 0.02}), (DECODE, PREFILL)),
        (state(1, 2, HOT, {"itl_p90": 0.0225}), (None, None)),
        (state(8, 9, HOT, {"itl_p90": 0.06}), (DECODE, PREFILL)),
        (state(8, 9, HOT, {"itl_p90": 0.08}), (None, None)),
    ],
    ids=[
        "prefill hot", "decode hot", "both idle", "both hot", "just below hot", "just hot", "one donor", "in band",
        "on the band's edge", "large fleet, in band", "large fleet, out of band",
    ],
)  # fmt: skip
def test_flips_by_pressure(given: Snapshot, expected: tuple[Role | None, Role | None]) -> None:
    """The truth table of `want`."""
    assert flip(given) == expected


@pytest.mark.parametrize(
    ("on_prefill", "on_decode", "named"),
    [
        ({"waiting": UNKNOWN}, {}, "waiting of role Prefill"),
        ({"ttft_p90": UNKNOWN}, {}, "ttft_p90_seconds of role Prefill"),
        (HOT, {"itl_p90": UNKNOWN}, "itl_p90_seconds of role Decode"),
        (HOT, {"kv_usage": UNKNOWN}, "kv_usage of role Decode"),
        (HOT, {"waiting": UNKNOWN}, "waiting of role Decode"),
        (HOT, {"running": UNKNOWN}, "running of role Decode"),
    ],
)
def test_one_unknown_signal_holds(on_prefill: Values, on_decode: Values, named: str) -> None:
    """However hot the other role is."""
    given = state(2, 2, on_prefill, on_decode)
    hold = role_verdict(given, seasoned(), Fleet.of(given)).hold
    assert hold is not None
    assert hold.reason == reasons.METRICS_MISSING
    assert hold.message.startswith(named)


@pytest.mark.parametrize(("rate", "expected"), [(42.0, (DECODE, PREFILL)), (43.0, (None, None))])
def test_a_donor_keeps_what_its_demand_needs(rate: float, expected: tuple[Role | None, Role | None]) -> None:
    """Two pods at 42 tokens/s each leave one at 84; it saturated at 100, 85 % of which are allowed."""
    given = state(2, 2, HOT, {"generation_tokens": rate})
    memory = seasoned(capacity={"Decode/TP": Capacity(100.0, NOW - 60)})
    assert flip(given, memory) == expected
    if expected == (None, None):
        hold = role_verdict(given, memory, Fleet.of(given)).hold
        assert hold == Hold(reasons.KNOWN_CAPACITY, "Decode would have 86 tokens/s per pod; it saturated at 100")


def test_capacities_of_roles_are_learnt_under_pressure() -> None:
    """For prefill only with a queue: a long prompt alone makes TTFT long."""
    queueing = state(2, 2, {"waiting": 5, "prompt_tokens": 300}, {"itl_p90": 0.06, "generation_tokens": 70})
    learnt = learn(queueing, seasoned(), Fleet.of(queueing))
    assert learnt["Prefill/TP"] == Capacity(300.0, NOW)
    assert learnt["Decode/TP"] == Capacity(70.0, NOW)
    long_prompt = state(2, 2, {"ttft_p90": 9.0, "prompt_tokens": 300})
    assert "Prefill/TP" not in learn(long_prompt, seasoned(), Fleet.of(long_prompt))


def test_candidates_are_serving_donors_longest_at_rest_first() -> None:
    """Pods of the other role, and pods that do not serve, are none."""
    views = [pod(0, PREFILL), pod(1, DECODE), pod(2, DECODE, ready=False), pod(3, DECODE), pod(4, DECODE)]
    given = snapshot(views, split(1, 4), metrics=both(metrics(PREFILL, ttft_p90=3.0), metrics(DECODE)))
    verdict = role_verdict(given, seasoned(transition_at={"chat-4": NOW - 60}), Fleet.of(given))
    assert [each.pod for each in verdict.candidates] == ["chat-3", "chat-1", "chat-4"]
    assert verdict.evidence == "Role:Prefill"
    assert verdict.message == "pressure 2 on Prefill, 0 on Decode"


def test_a_unified_service_has_no_roles_to_choose() -> None:
    """It needs no metrics for it either."""
    given = snapshot([pod(0)], metrics=metrics(waiting=UNKNOWN))
    assert role_verdict(given, seasoned(), Fleet.of(given)).hold == STEADY


BOUNDED = spec(
    roles=[
        {"name": "Prefill", "replicas": 2, "min": 2, "max": 3},
        {"name": "Decode", "replicas": 2, "min": 1},
    ]
)
WITH_UNIFIED = spec(roles=[{"name": "Unified"}, {"name": "Prefill"}, {"name": "Decode"}])


@pytest.mark.parametrize(
    ("service", "views", "expected"),
    [
        (BOUNDED, pods(2, 2), None),
        (BOUNDED, pods(3, 1), None),
        (BOUNDED, pods(1, 3), (DECODE, PREFILL)),
        (BOUNDED, pods(4, 1), (PREFILL, DECODE)),
        (BOUNDED, pods(1, 1), None),
        (BOUNDED, (*pods(2, 1), pod(3)), (Role.UNIFIED, DECODE)),
        (WITH_UNIFIED, (pod(0), pod(1), pod(2, PREFILL)), (Role.UNIFIED, DECODE)),
    ],
)
def test_broken_bounds(
    service: InferenceServiceSpec, views: tuple[PodView, ...], expected: tuple[Role, Role] | None
) -> None:
    """The truth table of `broken_bound`."""
    mend = broken_bound(service, Fleet.of(snapshot(views, service)))
    assert (None if mend is None else (mend.donor, mend.receiver)) == expected


def test_bounds_are_mended_without_metrics() -> None:
    """The spec orders it, as it orders the number of pods."""
    given = snapshot(pods(1, 3), BOUNDED, metrics=metrics(waiting=UNKNOWN))
    (verdict,) = roles_verdicts(given, seasoned(), Fleet.of(given))
    assert verdict.source is Source.BOUNDS
    assert next((each.pod, each.to) for each in verdict.candidates) == ("chat-3", "Prefill")
    assert isinstance(broken_bound(BOUNDED, Fleet.of(given)), Mend)
