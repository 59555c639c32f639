# SPDX-License-Identifier: Apache-2.0
"""What holds for every simulated fleet: requests end once, tokens and KV are conserved, bounds are kept."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.perf.profiles import find_profile
from gearshift.sim.fleet.controllers import controller
from gearshift.sim.fleet.outcome import Outcome
from gearshift.sim.fleet.settings import FleetSettings
from gearshift.sim.fleet.world import World
from gearshift.sim.load.arrivals import Arrival

EXAMPLES = settings(max_examples=30, deadline=None)
SETTINGS = FleetSettings(profile=find_profile("tiny"), startup_seconds=20.0, max_num_batched_tokens=512)
ROLES: dict[str, list[dict[str, Any]]] = {
    "scaling": [{"name": "Unified", "replicas": 2, "min": 1, "max": 4}],
    "fixed": [{"name": "Unified", "replicas": 2}],
    "split": [{"name": "Prefill", "replicas": 2, "min": 1}, {"name": "Decode", "replicas": 2, "min": 1}],
}


@st.composite
def traces(draw: st.DrawFn) -> list[Arrival]:
    """Up to 60 requests in bursts and pauses; some share prefixes, some can never fit a pod."""
    at, trace = 0.0, []
    for number in range(draw(st.integers(1, 60))):
        at += draw(st.sampled_from([0.0, 0.0, 0.01, 0.5, 20.0, 120.0]))
        prompt = draw(st.sampled_from([1, 30, 700, 9_000, 60_000, 600_000]))
        prefixes = draw(st.sampled_from([(), (1, 2), (1, 3), (4,)]))
        trace.append(Arrival(at, prompt, draw(st.sampled_from([1, 2, 40, 900])), number, prefixes))
    return trace


def played(kind: str, policy: str, layouts: list[str], trace: list[Arrival]) -> Outcome:
    spec = InferenceServiceSpec.model_validate(
        {
            "model": {"uri": "hf://org/model"},
            "engine": {"kind": "Simulated"},
            "pod": {"accelerators": 2},
            "parallelism": {"layouts": layouts},
            "roles": ROLES[kind],
            "policy": {"window": "10s", "dwell": "10s", "cooldown": "5s"},
        }
    )
    return World(spec, SETTINGS, controller(policy, 1, 4, 4.0), trace).run()


@EXAMPLES
@given(
    kind=st.sampled_from(sorted(ROLES)),
    policy=st.sampled_from(["ours", "reactive", "static:1", "static:2:1"]),
    layouts=st.sampled_from([["TP"], ["TP", "DP"], ["TP", "Shift"]]),
    trace=traces(),
)
def test_requests_end_once_and_nothing_is_left_behind(
    kind: str, policy: str, layouts: list[str], trace: list[Arrival]
) -> None:
    outcome = played(kind, policy, layouts, trace)
    for request in outcome.requests:
        assert (request.finished_at is not None) != bool(request.failed)
        if request.finished_at is not None:
            assert request.first_token_at is not None
            assert request.arrived_at < request.first_token_at <= request.finished_at
            assert request.generated == request.output_tokens
    served = [each for each in outcome.requests if not each.failed]
    assert {each.failed for each in outcome.requests} <= {"", "TooLong", "QueueTimeout", "PodGone"}
    assert all(each.prompt_tokens > 60_000 for each in outcome.requests if each.failed == "TooLong")
    assert sum(pod.counters.generation_tokens for pod in outcome.pods) >= sum(each.output_tokens for each in served)
    for pod in outcome.pods:
        assert pod.in_flight == 0
        assert all(replica.kv_used == 0 and replica.idle for replica in pod.replicas)


@EXAMPLES
@given(policy=st.sampled_from(["ours", "reactive"]), trace=traces())
def test_the_number_of_pods_keeps_its_bounds(policy: str, trace: list[Arrival]) -> None:
    outcome = played("scaling", policy, ["TP"], trace)
    deleting = sum(1 for pod in outcome.pods if pod.gone_at is not None)
    assert all(1 <= frame.pods <= 4 + deleting for frame in outcome.frames)
    assert outcome.gpu_hours <= len(outcome.pods) * 2 * outcome.seconds / 3600 + 1e-9
