# SPDX-License-Identifier: Apache-2.0
"""`kubectl scale` up and down under load: pods come and are used, the one that goes is named and drained, and no
request fails.
"""

import re

import pytest

from gsstack.load import Load
from gsstack.services import Service
from gsstack.space import Space

pytestmark = pytest.mark.e2e

SLOW = ["--profile=llama-3-70b-fp8-h200", "--startup=1s"]  # an answer lasts for more than a second: a drain has work


def test_scale_up_and_down_loses_nothing(space: Space) -> None:
    service = space.serve("chat", args=SLOW, policy={"window": "5s"})
    with Load(service.url(), requests_per_second=4, output_tokens=64) as load:
        first = service.uids()
        scale(service, 3)
        more = service.uids()
        assert more.keys() == {"chat-0", "chat-1", "chat-2"}
        assert more["chat-0"] == first["chat-0"]
        load.wait_for_answers(12)
        scale(service, 1)
        load.wait_for_answers(4)
    assert load.failures() == []
    left = service.uids()
    assert left.items() <= more.items()
    assert len(left) == 1
    assert deleted(service) == more.keys() - left.keys()
    assert service.get()["spec"]["replicas"] == 1


def scale(service: Service, replicas: int) -> None:
    """Scale as a user does; return when so many pods serve and no other is left."""
    service.kubectl("scale", f"gsvc/{service.name}", "-n", service.namespace, f"--replicas={replicas}")
    service.wait_for(
        lambda status: (status["replicas"], status["readyReplicas"]) == (replicas, replicas), f"{replicas} pods", 120
    )
    service.wait_settled()
    assert len(service.uids()) == replicas


def deleted(service: Service) -> set[str]:
    """Pods that events name as deleted for a scale-down."""
    found = service.kubectl.json("get", "events.events.k8s.io", "-n", service.namespace)["items"]
    notes = [event["note"] for event in found if event["reason"] == "PodDeleted"]
    return {pod for note in notes if ": ScaleDown (" in note for pod in re.findall(r"delete ([^\s,:]+)", note)}
