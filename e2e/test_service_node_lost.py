# SPDX-License-Identifier: Apache-2.0
"""A node that is cut off loses its pods to the other one, the router and the operator too; when it comes back, nothing
is there twice.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from gearshift.api import names
from gscluster import faults
from gscluster.cluster import Cluster
from gscluster.waiting import wait_for
from gsstack.chain import Chain, running_in
from gsstack.client import complete
from gsstack.services import Service
from gsstack.space import Space

pytestmark = pytest.mark.e2e

PODS = 2
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {names.LABEL_COMPONENT: names.COMPONENT_ENGINE}},
}
PROMPT = "Is anybody there?"


@pytest.fixture
def whole_afterwards(chain: Chain) -> Iterator[None]:
    yield
    chain.cluster.wait_until_usable()
    chain.cluster.route_services_via("node-1")


@pytest.mark.usefixtures("whole_afterwards")
def test_the_other_node_takes_over(chain: Chain, space: Space) -> None:
    cluster = chain.cluster
    template = {"spec": {"topologySpreadConstraints": [SPREAD]}}
    service = space.serve("chat", roles=[{"name": "Unified", "replicas": PODS}], pod={"template": template})
    before = service.uids()
    assert set(_nodes(service)) == {"node-1", "node-2"}
    text = complete(service.url(), PROMPT, model="simulated").text
    lost, kept = _router_node(service), _other(_router_node(service))
    survivor = next(pod for pod in service.pods() if pod["spec"]["nodeName"] == kept)["metadata"]["name"]
    cluster.route_services_via(kept)
    with faults.link_cut(cluster, lost):
        wait_for(lambda: _is_lost(cluster, lost), f"{lost} to be seen as lost", timeout_seconds=180)
        wait_for(lambda: _nodes(service) == [kept] * PODS, f"all pods on {kept}", timeout_seconds=180)
        service.wait_settled(180)
        assert complete(service.url(), PROMPT, model="simulated").text == text
        after = service.uids()
    assert set(after.values()) & set(before.values()) == {before[survivor]}
    assert len(after) == PODS
    cluster.wait_until_usable()
    back = [cluster.node(lost)]
    wait_for(lambda: not running_in(back, space.name), f"the old containers on {lost} to end", timeout_seconds=180)
    assert service.uids() == after
    service.wait_settled(180)
    assert complete(service.url(), PROMPT, model="simulated").text == text


def _nodes(service: Service) -> list[str]:
    """Node of each engine pod that is not on its way out."""
    pods = [pod for pod in service.pods() if "deletionTimestamp" not in pod["metadata"]]
    return sorted(pod["spec"].get("nodeName", "") for pod in pods)


def _router_node(service: Service) -> str:
    selector = f"{names.LABEL_SERVICE}={service.name},{names.LABEL_COMPONENT}={names.COMPONENT_ROUTER}"
    pods: list[dict[str, Any]] = service.kubectl.json("get", "pods", "-n", service.namespace, "-l", selector)["items"]
    return str(pods[0]["spec"]["nodeName"])


def _other(node: str) -> str:
    return "node-2" if node == "node-1" else "node-1"


def _is_lost(cluster: Cluster, node: str) -> bool:
    return any(complaint.startswith(f"{node}: not Ready") for complaint in cluster.not_ready())
