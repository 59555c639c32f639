# SPDX-License-Identifier: Apache-2.0
"""Scaling in a closed loop: bounds are kept, constant load comes to rest, more demand never asks for fewer pods."""

from dataclasses import replace
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.policy.decide import decide
from gearshift.policy.fleet import Fleet
from gearshift.policy.memory import fold
from gearshift.policy.plan import CreatePod, DeletePod, Memory
from gearshift.policy.rates import EngineRates
from gearshift.policy.sizing import Sizing, sizing
from gearshift.policy.snapshot import Metrics, PodView, Reading, Signal, Snapshot

LOOP = settings(max_examples=15, deadline=None)
RATES = EngineRates(10_000.0, 0.01, 0.0001, request_seconds=0.1)
STARTUP_SECONDS = 60.0


def service(least: int, most: int, replicas: int) -> InferenceServiceSpec:
    roles = [{"name": "Unified", "min": least, "max": most, "replicas": replicas}]
    return InferenceServiceSpec.model_validate({"model": {"uri": "hf://org/model"}, "roles": roles})


def new_pod(ordinal: int, at: float) -> PodView:
    starting = PodPhase.STARTING
    return PodView(
        f"s-{ordinal}", f"u-{ordinal}-{at}", ordinal, "r", Role.UNIFIED, Layout.TP, 0, starting, False, at, at
    )


def readings(prompts: float, pods: int, at: float) -> Metrics:
    """A fleet that queues once its pods are busy all the time."""
    busy = prompts / RATES.prefill_tokens_per_second / max(pods, 1)
    values = {
        Signal.WAITING: 0.0 if busy < 1 else 50.0,
        Signal.RUNNING: 10.0 * pods,
        Signal.KV_USAGE: 0.2,
        Signal.PROMPT_TOKENS: prompts,
        Signal.GENERATION_TOKENS: 0.0,
        Signal.TTFT_P90: 0.1,
        Signal.ITL_P90: 0.02,
    }
    return Metrics({(signal, None): Reading(value, at, 1) for signal, value in values.items()})


def play(spec: InferenceServiceSpec, demand: float, noise: float, seed: int, *, yardstick: bool) -> list[int]:
    """Live pods tick by tick over forty minutes of constant demand, read with noise."""
    random = Random(seed)
    pods: dict[int, PodView] = {}
    memory, at, counts = Memory(started_at=0.0), 0.0, []
    while at < 2400:
        at += 10.0
        for ordinal, pod in pods.items():
            if not pod.ready and at - pod.created_at >= STARTUP_SECONDS:
                pods[ordinal] = replace(pod, phase=PodPhase.SERVING, ready=True, since=at)
        serving = sum(pod.serving for pod in pods.values())
        metrics = readings(demand * random.uniform(1 - noise, 1 + noise), serving, at) if serving else Metrics()
        rates = {Layout.TP: RATES} if yardstick else {}
        state = Snapshot(at, "ns", "s", "uid", 1, spec, "r", tuple(pods.values()), metrics, rates=rates)
        memory = fold(memory, state)
        for action in decide(state, memory).actions:
            if isinstance(action, CreatePod):
                pods[action.ordinal] = new_pod(action.ordinal, at)
            elif isinstance(action, DeletePod):
                pods = {ordinal: pod for ordinal, pod in pods.items() if pod.uid != action.uid}
        counts.append(len(pods))
    return counts


@LOOP
@given(
    least=st.integers(1, 3),
    room=st.integers(1, 8),
    start=st.integers(0, 8),
    demand=st.floats(0, 60_000),
    noise=st.floats(0, 0.02),
    seed=st.integers(0, 9),
    yardstick=st.booleans(),
)
def test_constant_load_comes_to_rest_within_bounds(
    least: int, room: int, start: int, demand: float, noise: float, seed: int, yardstick: bool
) -> None:
    most = least + room
    counts = play(service(least, most, min(least + start, most)), demand, noise, seed, yardstick=yardstick)
    assert min(counts) >= least
    assert max(counts) <= most
    turns = [later - before for before, later in pairwise(counts) if later != before]
    reversals = sum(1 for before, later in pairwise(turns) if before * later < 0)
    assert reversals <= (1 if yardstick else 6)  # without one it learns what a pod carries only when it queues
    assert len(set(counts[-30:])) == 1 or not yardstick


@LOOP
@given(pods=st.integers(1, 9), prompts=st.floats(0, 1e6), more=st.floats(1, 10))
def test_more_demand_never_asks_for_fewer_pods(pods: int, prompts: float, more: float) -> None:
    views = tuple(replace(new_pod(n, 0.0), phase=PodPhase.SERVING, ready=True) for n in range(pods))
    found = []
    for demand in (prompts, prompts * more):
        metrics = readings(demand, pods, 9.0)
        state = Snapshot(9.0, "ns", "s", "u", 1, service(1, 9, 1), "r", views, metrics, rates={Layout.TP: RATES})
        found.append(sizing(state, Memory(0.0), Fleet.of(state)))
    less, larger = found
    assert isinstance(less, Sizing)
    assert isinstance(larger, Sizing)
    assert larger.up >= less.up
    assert larger.down >= less.down
