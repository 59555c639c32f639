# SPDX-License-Identifier: Apache-2.0
"""Engine pods, router and operator run in namespaces that enforce the `restricted` level, and none of them as root.

Every test of a service does so, those of vLLM too; here it is asserted.
"""

from typing import Any

import pytest

from gsstack.chain import Chain
from gsstack.install import OPERATOR_NAMESPACE
from gsstack.space import Space

pytestmark = pytest.mark.e2e

ENFORCE = "pod-security.kubernetes.io/enforce"
ROLES = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1}]


def test_no_container_needs_privileges(chain: Chain, space: Space) -> None:
    space.serve("chat", roles=ROLES)
    containers = [*_containers(chain, space.name), *_containers(chain, OPERATOR_NAMESPACE)]
    names = sorted(container["name"] for _, container in containers)
    assert names == ["engine", "engine", "operator", "router", "sidecar", "sidecar"]
    for pod, container in containers:
        _check(chain, pod, container)
    for namespace in (space.name, OPERATOR_NAMESPACE):
        labels = chain.kubectl.json("get", "namespace", namespace)["metadata"]["labels"]
        assert labels[ENFORCE] == "restricted"


def _containers(chain: Chain, namespace: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    pods = chain.kubectl.json("get", "pods", "-n", namespace, "--field-selector=status.phase=Running")["items"]
    return [
        (pod, container)
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
    ]


def _check(chain: Chain, pod: dict[str, Any], container: dict[str, Any]) -> None:
    """Its process has no user 0, no capability and a read-only root."""
    where = ["-n", pod["metadata"]["namespace"], pod["metadata"]["name"], "-c", container["name"]]
    assert chain.kubectl("exec", *where, "--", "id", "-u").strip() != "0"
    status = dict(
        line.split(":\t", 1) for line in chain.kubectl("exec", *where, "--", "cat", "/proc/1/status").splitlines()
    )
    assert "0" not in status["Uid"].split()
    assert int(status["CapEff"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
