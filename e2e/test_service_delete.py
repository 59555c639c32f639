# SPDX-License-Identifier: Apache-2.0
"""Deleting a service leaves nothing: no object of any type, no container, no address that answers."""

import pytest

from gearshift.api import names
from gscluster.shell import succeeds
from gscluster.waiting import wait_for
from gsstack.chain import Chain, running_in
from gsstack.client import complete
from gsstack.services import Service
from gsstack.space import Space

pytestmark = pytest.mark.e2e

ROLES = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1}]


def test_delete_leaves_nothing(chain: Chain, space: Space) -> None:
    wait_for(lambda: len(space.objects()) == 2, "what each namespace has", timeout_seconds=180)
    before = space.objects()
    service = space.serve("chat", roles=ROLES)
    url = service.url()
    assert complete(url, "Who goes?", model="simulated").status == 200
    assert len(space.objects()) > 12
    space.kubectl("delete", "gsvc", "chat", "-n", space.name, timeout_seconds=120)
    wait_for(lambda: space.objects() == before, "everything to be gone", timeout_seconds=180)
    assert not succeeds(["curl", "--silent", "--fail", "--max-time", "2", f"{url}/health"])
    wait_for(lambda: running_in(chain.cluster.nodes, space.name) == [], "its containers to end", timeout_seconds=180)


def test_a_service_that_is_deleted_while_it_starts_leaves_nothing(space: Space) -> None:
    wait_for(lambda: len(space.objects()) == 2, "what each namespace has", timeout_seconds=180)
    before = space.objects()
    service = space.apply(space.simulated("chat", args=["--profile=tiny", "--startup=1h"], roles=ROLES))
    wait_for(lambda: _hosts_listening(service) == 2, "its pods to start engines", timeout_seconds=180)
    space.kubectl("delete", "gsvc", "chat", "-n", space.name, timeout_seconds=120)
    wait_for(lambda: space.objects() == before, "everything to be gone", timeout_seconds=180)


def _hosts_listening(service: Service) -> int:
    """Pods whose engine host runs: process 1 of a container can't be told to end before."""
    pods = [pod for pod in service.pods() if pod["status"]["phase"] == "Running"]
    words = ["-n", service.namespace, "-c", names.CONTAINER_ENGINE]
    return sum("listening on" in service.kubectl("logs", pod["metadata"]["name"], *words) for pod in pods)
