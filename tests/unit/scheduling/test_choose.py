# SPDX-License-Identifier: Apache-2.0
"""The choice of a pod, over all fleets: what may never be chosen, what must be, and that order doesn't matter."""

from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearshift.api.vocabulary import Role
from gearshift.scheduling.choose import Path, Split, Trust, Whole, choose_route, least_load, load


@dataclass(frozen=True)
class Pod:
    number: int
    admitting: bool = True
    role: Role = Role.UNIFIED
    trust: Trust = Trust.FRESH
    in_flight: int = 0
    reported: int = 0


@st.composite
def fleets(draw: st.DrawFn) -> list[Pod]:
    size = draw(st.integers(0, 8))
    return [
        Pod(
            number,
            draw(st.booleans()),
            draw(st.sampled_from(Role)),
            draw(st.sampled_from(Trust)),
            draw(st.integers(0, 3)),
            draw(st.integers(0, 3)),
        )
        for number in range(size)
    ]


def rank(pod: Pod) -> tuple[Trust, int]:
    return pod.trust, load(pod)


@given(fleets(), st.integers())
def test_the_least_loaded_of_the_most_trusted_that_admit_is_chosen(fleet: list[Pod], seed: int) -> None:
    chosen = least_load(fleet, Random(seed))
    admitting = [pod for pod in fleet if pod.admitting]
    if chosen is None:
        assert not admitting
    else:
        assert chosen in admitting
        assert rank(chosen) == min(map(rank, admitting))


@given(fleets(), st.integers(), st.booleans(), st.randoms(use_true_random=False))
def test_a_route_holds_only_pods_that_admit_and_exists_if_one_does(
    fleet: list[Pod], seed: int, can_split: bool, shuffler: Random
) -> None:
    route = choose_route(fleet, Random(seed), lambda: can_split)
    assert (route is None) == (not any(pod.admitting for pod in fleet))
    if isinstance(route, Split):
        assert can_split
        assert route.prefill.admitting
        assert route.decode.admitting
        assert (route.prefill.role, route.decode.role) == (Role.PREFILL, Role.DECODE)
    elif isinstance(route, Whole):
        assert route.pod.admitting
    shuffled = list(fleet)
    shuffler.shuffle(shuffled)
    again = choose_route(shuffled, Random(seed), lambda: can_split)
    assert ranks(again) == ranks(route)


def ranks(route: Whole[Pod] | Split[Pod] | None) -> list[tuple[object, ...]]:
    """What a route is worth, whichever of two equal pods it holds."""
    if route is None:
        return []
    pods = [route.prefill, route.decode] if isinstance(route, Split) else [route.pod]
    return [(type(route), pod.role, rank(pod)) for pod in pods]


def test_ties_are_spread_evenly() -> None:
    rng = Random(1)
    counts = Counter(chosen.number for _ in range(3000) if (chosen := least_load([Pod(0), Pod(1), Pod(2)], rng)))
    assert all(900 < counts[number] < 1100 for number in range(3))


P, D, U = Pod(1, role=Role.PREFILL), Pod(2, role=Role.DECODE), Pod(3)
BUSY = {"in_flight": 5}


@pytest.mark.parametrize(
    ("fleet", "can_split", "expected"),
    [
        ([U], True, Whole(U)),
        ([U], False, Whole(U)),
        ([P, D], True, Split(P, D)),
        ([P, D], False, Whole(D, Path.UNSPLITTABLE)),
        ([P], True, Whole(P, Path.FALLBACK)),
        ([D], True, Whole(D, Path.FALLBACK)),
        ([P, Pod(4, admitting=False, role=Role.DECODE)], True, Whole(P, Path.FALLBACK)),
        ([P, U], True, Whole(U)),
        ([P, D, U], True, Split(P, D)),
        ([P, D, Pod(3, in_flight=1)], True, Split(P, D)),
        ([Pod(1, role=Role.PREFILL, in_flight=2), D, Pod(3, in_flight=1)], True, Whole(Pod(3, in_flight=1))),
        ([P, D, U], False, Whole(U, Path.UNSPLITTABLE)),
    ],
)
def test_roles_make_the_route(fleet: list[Pod], can_split: bool, expected: object) -> None:
    assert choose_route(fleet, Random(0), lambda: can_split) == expected


def test_whether_a_request_can_be_split_is_not_asked_without_need() -> None:
    def never() -> bool:
        raise AssertionError

    assert choose_route([U], Random(0), never) == Whole(U)
