# SPDX-License-Identifier: Apache-2.0
"""Nodes without machines: a pod for each of 200 of them runs, with all the GPUs of its node."""

from typing import Any

import pytest

from gscluster.fast import fast_cluster
from gscluster.kwok import MARK, kwok_nodes
from gscluster.waiting import wait_for

pytestmark = pytest.mark.functional

NODES = 200


def test_pods_run_on_nodes_that_exist_only_as_objects() -> None:
    with fast_cluster(controllers=True) as running, kwok_nodes(running, NODES) as names:
        running.kubectl.create(*(_pod(number) for number in range(NODES)))

        def running_on() -> list[str]:
            pods = running.kubectl.json("get", "pods", "--field-selector=status.phase=Running")["items"]
            return sorted(pod["spec"]["nodeName"] for pod in pods)

        wait_for(lambda: running_on() == sorted(names), "a Running pod on each node", timeout_seconds=180)


def _pod(number: int) -> dict[str, Any]:
    container = {"name": "one", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    tolerations = [{"key": MARK, "operator": "Exists"}]
    metadata = {"name": f"pod-{number}", "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "tolerations": tolerations},
    }
