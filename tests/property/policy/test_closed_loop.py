# SPDX-License-Identifier: Apache-2.0
"""Constant load comes to rest: the policy never goes back and forth between two states."""

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.policy.snapshot import PodView
from tests.property.policy.plant import Plant

HOUR = 3600.0
LOOP = settings(max_examples=60, deadline=None)


def service(layouts: tuple[str, ...], prefill: int = 0, decode: int = 0, unified: int = 0) -> InferenceServiceSpec:
    """A service with defaults for window, dwell and cooldown."""
    counts = {"Unified": unified, "Prefill": prefill, "Decode": decode}
    return InferenceServiceSpec.model_validate(
        {
            "model": {"uri": "hf://org/model"},
            "parallelism": {"layouts": list(layouts)},
            "roles": [{"name": name, "replicas": count} for name, count in counts.items() if count],
        }
    )


def fleet(spec: InferenceServiceSpec, layout: Layout = Layout.TP) -> list[PodView]:
    """Its pods, all serving."""
    roles = [role.name for role in spec.roles for _ in range(role.replicas)]
    return [
        PodView(f"s-{n}", f"u-{n}", n, "r", role, layout, 0, PodPhase.SERVING, True, 0, 0, layouts=tuple(Layout))
        for n, role in enumerate(roles)
    ]


def most_reversals(plant: Plant) -> int:
    """Most changes that one pod went through; 1 is a change that stayed, 2 a change that was undone."""
    return max(Counter(move.pod for _, move in plant.moves).values(), default=0)


@LOOP
@given(
    pods=st.integers(1, 4),
    load=st.floats(0, 3),
    gain=st.floats(1.05, 3),
    start=st.sampled_from([Layout.TP, Layout.DP]),
)
def test_layouts_come_to_rest(pods: int, load: float, gain: float, start: Layout) -> None:
    """``load`` is demand by what all pods carry with TP, ``gain`` what DP carries by what TP carries.

    Without a memory of what TP carries a fleet that starts with DP may try TP once, and learns from it.
    """
    spec = service(("TP", "DP"), unified=pods)
    plant = Plant(spec, fleet(spec, start), load * 1000 * pods, {Layout.TP: 1000.0, Layout.DP: 1000.0 * gain})
    plant.run(HOUR / 2)
    assert most_reversals(plant) <= (2 if start is Layout.DP else 1)
    layouts = {pod.layout for pod in plant.pods}
    if load > 1.2:
        assert layouts == {Layout.DP} or sum(plant.capacity[pod.layout] for pod in plant.pods) >= plant.demand
    if load == 0:
        assert layouts == {Layout.TP}


@LOOP
@given(
    prefill=st.integers(1, 6),
    decode=st.integers(1, 6),
    load=st.floats(0, 2),
    share=st.floats(0.05, 0.95),
    factor=st.floats(0.3, 3),
)
def test_roles_come_to_rest(prefill: int, decode: int, load: float, share: float, factor: float) -> None:
    """``load`` is demand by what all pods carry as prefill pods, ``share`` the prompt tokens in it."""
    spec = service(("TP",), prefill=prefill, decode=decode)
    demand = load * 1000 * (prefill + decode)
    plant = Plant(spec, fleet(spec), demand, {Layout.TP: 1000.0}, share, factor)
    plant.run(HOUR / 2)
    assert len(plant.moves) <= prefill + decode
    directions = [move.to for _, move in plant.moves]
    assert sum(one != other for one, other in pairwise(directions)) <= 1
    roles = Counter(pod.role for pod in plant.pods)
    assert roles[Role.PREFILL] >= 1
    assert roles[Role.DECODE] >= 1


def test_a_burst_widens_and_its_end_narrows_again() -> None:
    """The loop is not merely still: load moves it, and back."""
    spec = service(("TP", "DP"), unified=2)
    plant = Plant(spec, fleet(spec), 500, {Layout.TP: 1000.0, Layout.DP: 2000.0})
    plant.run(300)
    assert plant.moves == []
    plant.demand = 3000
    plant.run(300)
    assert {pod.layout for pod in plant.pods} == {Layout.DP}
    plant.demand = 500
    plant.run(600)
    assert {pod.layout for pod in plant.pods} == {Layout.TP}
    assert len(plant.moves) == 4


def test_prefill_heavy_load_moves_pods_to_prefill_and_decode_heavy_load_back() -> None:
    """Both directions of the band."""
    spec = service(("TP",), prefill=2, decode=4)
    plant = Plant(spec, fleet(spec), 4000, {Layout.TP: 1000.0}, prompt_share=0.8)
    plant.run(600)
    assert Counter(pod.role for pod in plant.pods)[Role.PREFILL] > 2
    plant.prompt_share = 0.2
    plant.run(1200)
    assert Counter(pod.role for pod in plant.pods)[Role.PREFILL] <= 2
