# SPDX-License-Identifier: Apache-2.0
"""Status: what people and GitOps tools read."""

import pytest

from gearshift.api.conditions import CONDITION_TYPES
from tests.functional.operator.world import Space, until

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
    until(lambda: len(space.kubelet.pods()) == 1, "two pods to go", 40)
    until(lambda: space.status()["replicas"] == 1, "status to say so")


def test_a_pod_that_stops_answering_is_unknown_and_not_replaced(space: Space) -> None:
    space.apply()
    (sidecar,) = space.serve(1).values()
    sidecar.state = sidecar.state.model_copy(update={"uid": "another-pod"})
    until(lambda: space.status()["pods"][0]["phase"] == "Unknown", "the pod to be unknown")
    assert len(space.kubelet.pods()) == 1
    assert space.condition("Ready")["status"] == "False"
