# SPDX-License-Identifier: Apache-2.0
"""Status: what people and GitOps tools read."""

import pytest

from gearshift.api.conditions import CONDITION_TYPES
from tests.functional.operator.world import Operator, Space, until

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("leader")]

SPLIT = {"roles": [{"name": "Prefill"}, {"name": "Decode", "replicas": 2}]}


def test_ready_comes_when_every_role_serves_and_kubectl_can_wait_for_it(space: Space) -> None:
    space.apply(**SPLIT)
    until(lambda: space.condition("Ready").get("reason") == "RouterStarting", "Ready to name the router")
    space.run_router()
    until(lambda: space.condition("Ready").get("reason") == "NoServingPods", "Ready to name the pods")
    space.kubelet.run_all(3)
    space.cluster.kubectl("wait", "--for=condition=Ready", "gsvc/chat", "-n", space.name, "--timeout=20s")
    row = space.cluster.kubectl("get", "gsvc", "chat", "-n", space.name, "--no-headers").split()
    assert row[:4] == ["chat", "True", "TP", "1/2"]


def test_status_has_all_conditions_with_the_generation(space: Space) -> None:
    space.apply(**SPLIT)
    space.serve(3)
    body = space.get("gsvc", "chat")
    status, generation = body["status"], body["metadata"]["generation"]
    assert [entry["type"] for entry in status["conditions"]] == list(CONDITION_TYPES)
    assert {entry["observedGeneration"] for entry in status["conditions"]} == {generation}
    assert status["observedGeneration"] == generation
    assert {"name": "Decode", "desired": 2, "ready": 2} in status["roles"]
    assert [pod["phase"] for pod in status["pods"]] == ["Serving"] * 3


def test_scale_adds_and_removes_pods(space: Space) -> None:
    space.apply(roles=[{"name": "Unified", "replicas": 1, "min": 1, "max": 3}], policy={"window": "5s"})
    space.serve(1)
    space.cluster.kubectl("scale", "gsvc/chat", "--replicas=3", "-n", space.name)
    space.kubelet.run_all(3)
    until(lambda: space.status()["readyReplicas"] == 3, "three pods to serve")
    space.cluster.kubectl("scale", "gsvc/chat", "--replicas=1", "-n", space.name)
    until(lambda: len(space.kubelet.pods()) == 1, "two pods to go", 120)
    until(lambda: space.status()["replicas"] == 1, "status to say so")


def test_ready_comes_with_the_last_new_pod_and_stays_when_one_of_several_is_lost(space: Space) -> None:
    space.apply(roles=[{"name": "Unified", "replicas": 3}])
    space.run_router()
    first, second, third = until(lambda: (pods := space.kubelet.pods()) and len(pods) == 3 and pods, "three pods")
    space.kubelet.run(first)
    space.kubelet.run(second)
    until(lambda: space.status()["readyReplicas"] == 2, "two pods to serve")
    assert space.condition("Ready")["reason"] == "PodsStarting"
    assert "2 of 3 pods" in space.condition("Ready")["message"]
    space.kubelet.run(third)
    until(lambda: space.is_true("Ready"), "the service to be ready")
    assert space.status()["grownAt"]
    since = space.condition("Ready")["lastTransitionTime"]
    space.kubelet.report("chat-1", space.kubelet.sidecars[second["metadata"]["uid"]].address, "Running", ready=False)
    until(lambda: space.status()["readyReplicas"] == 2, "a pod to be lost")
    assert space.condition("EnginesReady")["status"] == "False"
    assert (space.condition("Ready")["status"], space.condition("Ready")["lastTransitionTime"]) == ("True", since)


def test_scale_to_nothing_and_back(space: Space, leader: Operator) -> None:
    space.apply(roles=[{"name": "Unified", "replicas": 2, "min": 0}], policy={"window": "5s"})
    space.serve(2)
    space.cluster.kubectl("scale", "gsvc/chat", "--replicas=0", "-n", space.name)
    until(lambda: not space.kubelet.pods(), "all pods to go", 120)
    until(lambda: space.condition("Ready").get("reason") == "ScaledToZero", "status to say so")
    until(lambda: space.condition("Reconciling").get("status") == "False", "the service to be quiet")
    assert space.is_true("Ready")
    space.cluster.kubectl("scale", "gsvc/chat", "--replicas=2", "-n", space.name)
    until(lambda: space.condition("Ready").get("reason") == "NoServingPods", "the pods to be missed")
    space.serve(2)
    series = f'gearshift_operator_pods_desired{{namespace="{space.name}",service="chat"}}'
    assert f"{series} 2.0" in leader.metrics()
    space.cluster.kubectl("delete", "gsvc", "chat", "-n", space.name)
    until(lambda: series not in leader.metrics(), "the series of a deleted service to go")


def test_a_pod_that_stops_answering_is_unknown_and_not_replaced(space: Space) -> None:
    space.apply()
    (sidecar,) = space.serve(1).values()
    sidecar.state = sidecar.state.model_copy(update={"uid": "another-pod"})
    until(lambda: space.status()["pods"][0]["phase"] == "Unknown", "the pod to be unknown")
    assert len(space.kubelet.pods()) == 1
    assert space.condition("Ready")["status"] == "False"
