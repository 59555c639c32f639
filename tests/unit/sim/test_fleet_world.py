# SPDX-License-Identifier: Apache-2.0
"""Whole runs of a simulated fleet: what happens to requests and pods, and what a run is counted as."""

from dataclasses import replace

import pytest

from gearshift.api.vocabulary import Layout, Role, TransitionKind
from gearshift.policy.plan import Action, CreatePod, DeletePod, Plan, Transit
from gearshift.policy.snapshot import Snapshot
from gearshift.sim.fleet.controllers import PolicyNameError, Static, controller
from gearshift.sim.fleet.outcome import Acted, reversals
from gearshift.sim.load.arrivals import Arrival
from tests.unit.sim.fleets import SETTINGS, load, service, world

SPLIT = service(roles=[{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1}])


class Scripted(Static):
    """A static fleet in which given actions happen at given times."""

    def __init__(self, pods: int, *script: tuple[float, Action]) -> None:
        super().__init__("scripted", {Role.UNIFIED: pods})
        self.script = list(script)

    def tick(self, snapshot: Snapshot) -> Plan:
        due = tuple(action for at, action in self.script if at <= snapshot.at)
        self.script = [each for each in self.script if each[0] > snapshot.at]
        return Plan("scripted", due)


def removal(ordinal: int, uid: str) -> DeletePod:
    return DeletePod(f"sim-{ordinal}", uid, "Test")


def test_every_request_is_served_once_with_its_tokens() -> None:
    outcome = world(load((60, 2.0)), "static:2").run()
    assert outcome.goodput == 1.0
    pods = outcome.pods
    assert sum(pod.counters.prompt_tokens for pod in pods) == sum(each.prompt_tokens for each in outcome.requests)
    assert sum(pod.counters.generation_tokens for pod in pods) == sum(each.output_tokens for each in outcome.requests)


def test_the_same_run_twice_is_the_same() -> None:
    first, second = (world(load((200, 3.0))).run().figures() for _ in range(2))
    assert first == second


def test_more_pods_are_faster_and_cost_more() -> None:
    runs = [world(load((120, 6.0)), f"static:{n}").run() for n in (1, 2, 4)]
    assert [each.gpu_hours for each in runs] == sorted(each.gpu_hours for each in runs)
    medians = [each.figures()["ttftSeconds"]["p90"] for each in runs]
    assert medians == sorted(medians, reverse=True)


def test_gpu_hours_are_pods_by_time() -> None:
    outcome = world(load((60, 1.0)), "static:3").run()
    assert outcome.gpu_hours == pytest.approx(3 * outcome.seconds / 3600)


def test_a_new_pod_serves_after_its_start_up() -> None:
    create = CreatePod(1, Role.UNIFIED, Layout.TP, "Test")
    outcome = world(load((120, 3.0)), Scripted(1, (10.0, create))).run()
    serving = {frame.at: frame.serving for frame in outcome.frames}
    assert (serving[65.0], serving[75.0]) == (1, 2)
    late = outcome.pods[1]
    assert late.created_at == 10.0
    assert late.counters.generation_tokens > 0


def test_a_deleted_pod_drains_before_it_goes() -> None:
    run = world(load((60, 3.0)), Scripted(2, (20.0, removal(1, "uid-2"))))
    outcome = run.run()
    gone = next(pod for pod in outcome.pods if pod.ordinal == 1)
    assert gone.gone_at is not None
    assert 20.0 < gone.gone_at < 40.0
    assert outcome.figures()["failed"] == {}


def test_a_drain_that_takes_too_long_loses_requests() -> None:
    trace = [Arrival(0.0, 100, 5000, 1)]
    spec = service(policy={"drainTimeout": "10s"})
    outcome = world(trace, Scripted(1, (5.0, removal(0, "uid-1"))), spec).run()
    assert outcome.figures()["failed"] == {"PodGone": 1}


def test_a_transition_drains_switches_and_serves_in_the_new_layout() -> None:
    spec = service(pod={"accelerators": 4}, parallelism={"layouts": ["TP", "DP"]})
    order = Transit("sim-1", TransitionKind.LAYOUT, "DP", 0, "Test")
    outcome = world(load((60, 3.0)), Scripted(2, (20.0, order)), spec).run()
    moved = next(pod for pod in outcome.pods if pod.ordinal == 1)
    assert (moved.layout, moved.epoch, len(moved.replicas)) == (Layout.DP, 1, 4)
    assert 20.0 < moved.since < 40.0
    assert outcome.goodput == 1.0


def test_an_order_for_an_older_epoch_does_nothing() -> None:
    spec = service(pod={"accelerators": 4}, parallelism={"layouts": ["TP", "DP"]})
    order = Transit("sim-1", TransitionKind.LAYOUT, "DP", 7, "Test")
    outcome = world(load((30, 1.0)), Scripted(2, (10.0, order)), spec).run()
    assert {pod.layout for pod in outcome.pods} == {Layout.TP}


def test_split_roles_serve_each_request_on_two_pods() -> None:
    outcome = world(load((60, 2.0)), "static:1:1", SPLIT).run()
    prefill, decode = sorted(outcome.pods, key=lambda pod: pod.role is Role.DECODE)
    assert outcome.figures()["failed"] == {}
    assert (prefill.counters.generation_tokens, decode.counters.prompt_tokens) == (0, 0)
    assert decode.counters.generation_tokens == sum(each.output_tokens for each in outcome.requests)


def test_requests_wait_at_the_router_for_a_pod_and_give_up_after_a_while() -> None:
    trace = [Arrival(1.0, 100, 10, 1)]
    nobody = Static("nobody", {})
    outcome = world(trace, nobody, settings=replace(SETTINGS, queue_timeout_seconds=5.0)).run()
    assert outcome.figures()["failed"] == {"QueueTimeout": 1}
    assert outcome.seconds == 6.0


def test_ours_grows_with_load_and_shrinks_after_it() -> None:
    spec = service(1)
    outcome = world(load((400, 0.5), (300, 8.0), (1300, 0.5)), "ours", spec).run()
    pods = [frame.pods for frame in outcome.frames]
    assert max(pods) >= 3
    assert pods[-1] < max(pods)
    assert outcome.reversals == 0
    assert outcome.figures()["failed"] == {}


def test_reversals_are_opposite_actions_within_two_minutes() -> None:
    up, down = CreatePod(0, Role.UNIFIED, Layout.TP, ""), removal(0, "u")
    there = Transit("a", TransitionKind.LAYOUT, "DP", 0, "")
    back = Transit("b", TransitionKind.LAYOUT, "TP", 0, "")
    assert reversals([Acted(0, up), Acted(119, down)]) == 1
    assert reversals([Acted(0, up), Acted(121, down)]) == 0
    assert reversals([Acted(0, up), Acted(50, down), Acted(50, down), Acted(60, up)]) == 2
    assert reversals([Acted(0, there, "TP"), Acted(60, back, "DP")]) == 1
    assert reversals([Acted(0, there, "TP"), Acted(60, up)]) == 0


@pytest.mark.parametrize("name", ["mine", "static", "static:0", "static:1:2:3", "static:x", "ours:1"])
def test_an_unknown_policy_is_named(name: str) -> None:
    with pytest.raises(PolicyNameError, match="known: ours, static:N, static:P:D, reactive"):
        controller(name, 1, 2, 16.0)


def test_ours_costs_less_than_the_best_static_fleet_and_serves_as_well() -> None:
    rates = (1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 10.0, 8.0, 6.0, 4.0, 3.0, 2.0, *[1.0] * 9)
    trace = load(*((120.0, rate) for rate in rates))
    statics = [world(trace, f"static:{n}").run() for n in range(1, 6)]
    best = max(statics, key=lambda each: (each.good, -each.gpu_hours))
    ours = world(trace, "ours", service(2)).run()
    assert ours.goodput >= best.goodput - 0.002
    assert ours.gpu_hours <= 0.95 * best.gpu_hours
    assert ours.reversals <= 2
