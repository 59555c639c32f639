# SPDX-License-Identifier: Apache-2.0
"""Specs that can't be served: refused at `kubectl apply`, or told in status while what runs goes on."""

from typing import Any

import pytest

from gscluster.errors import ClusterError
from gsstack.client import complete
from gsstack.space import Space

pytestmark = pytest.mark.e2e

PREFILL, DECODE = {"name": "Prefill"}, {"name": "Decode"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"pod": {"accelerators": 7}}, 'spec.pod.accelerators: Unsupported value: 7: supported values: "1", "2", "4", "8"'),
    (
        {"parallelism": {"layouts": ["SP"], "sequenceParallelSize": 8}, "pod": {"accelerators": 4}},
        "parallelism.sequenceParallelSize: 8 does not divide pod.accelerators 4",
    ),
    ({"parallelism": {"layouts": ["PP"]}}, 'spec.parallelism.layouts[0]: Unsupported value: "PP"'),
    ({"parallelism": {"layouts": ["TP"], "initial": "DP"}}, "initial: DP is not one of layouts"),
    (
        {"pod": {"accelerators": 1}, "parallelism": {"layouts": ["TP", "DP"]}},
        "parallelism.layouts: a pod with pod.accelerators 1 has only layout TP",
    ),
    ({"roles": [{"name": "Unified", "replicas": 2, "min": 2, "max": 1}]}, "role Unified: min 2 is above max 1"),
    ({"roles": [PREFILL, PREFILL, DECODE]}, '.spec.roles: duplicate entries for key [name="Prefill"]'),
    ({"roles": [PREFILL]}, "roles: Prefill and Decode come together"),
    ({"roles": [{"name": "Unified", "replicas": -1}]}, "spec.roles[0].replicas: Invalid value: -1"),
    ({"replicas": 1, "roles": [PREFILL, DECODE]}, "replicas: 1 is below the sum of the roles' floors"),
    ({"engine": {"kind": "Simulated", "args": ["--port=1"]}}, "args: --port=1 is set by Gearshift"),
    ({"policy": {"window": "1s"}}, "window: 1s is not between 5s and 1h"),
    ({"policy": {"actuation": "Sometimes"}}, 'spec.policy.actuation: Unsupported value: "Sometimes"'),
    (
        {"override": {"layout": "DP", "until": "2099-01-01T00:00:00Z"}},
        "override.layout: DP is not one of parallelism.layouts",
    ),
    ({"model": {"uri": "s3://bucket/model"}}, 'spec.model.uri: Invalid value: "s3://bucket/model"'),
    ({"replica": 3}, 'ValidationError(InferenceService.spec): unknown field "replica"'),
]
BROKEN: list[tuple[dict[str, Any], str]] = [
    (
        {"spec": {"containers": [{"name": "engine", "command": ["sleep", "1"]}]}},
        "spec.pod.template.spec.containers[engine].command: is set by the operator",
    ),
    ({"spec": {"hostNetwork": True}}, 'violates PodSecurity "restricted:latest"'),
]


def test_the_api_server_refuses_what_can_not_be_served(space: Space) -> None:
    for parts, words in REFUSED:
        with pytest.raises(ClusterError) as refusal:
            space.kubectl.apply_server_side(space.simulated("chat", **parts))
        message = str(refusal.value)
        assert words in message, f"{parts}: {message}"
        assert "chat" in message or "InferenceService" in message
    assert not [name for name in space.objects() if name.startswith("inferenceservice")]


def test_a_template_that_breaks_pods_is_told_and_what_serves_goes_on(space: Space) -> None:
    service = space.serve("chat")
    pods, text = service.uids(), complete(service.url(), "Go on.", model="simulated").text
    for template, words in BROKEN:
        space.apply(space.simulated("chat", pod={"template": template}))
        service.wait_for(lambda _: service.condition("SpecValid").get("status") == "False", "SpecValid to be False")
        assert words in service.condition("SpecValid")["message"]
        assert service.condition("Stalled")["status"] == "True"
        assert words in service.condition("Stalled")["message"]
        assert service.condition("SpecValid")["observedGeneration"] == service.get()["metadata"]["generation"]
        assert service.uids() == pods
        assert complete(service.url(), "Go on.", model="simulated").text == text
        space.apply(space.simulated("chat"))
        service.wait_settled()
        assert service.condition("SpecValid")["status"] == "True"
        assert service.condition("Stalled")["status"] == "False"
        assert service.uids() == pods
