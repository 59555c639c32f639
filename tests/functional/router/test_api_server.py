# SPDX-License-Identifier: Apache-2.0
"""Endpoints from a real API server: certificates, lists, watches, deletion, and its absence."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gearshift.api import names
from gearshift.api.routerconfig import RouterConfig
from gearshift.router.endpoints import Endpoint
from gearshift.router.kubeaccess import find_access
from gearshift.router.kubeendpoints import KubeEndpoints
from gscluster import control_plane
from gscluster.fast import FastCluster, fast_cluster
from tests.functional.router.fakes import until

pytestmark = pytest.mark.functional

CONFIG = RouterConfig(namespace="default", service="chat", service_uid="u1", model="tiny")


@pytest.fixture(scope="module")
def cluster() -> Iterator[FastCluster]:
    """An API server without controllers."""
    with fast_cluster() as running:
        yield running


def sockets() -> set[str]:
    """Sockets that this process holds."""
    links = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.add(str(descriptor.readlink()))
    return {link for link in links if link.startswith("socket:")}


@pytest_asyncio.fixture
async def published(cluster: FastCluster) -> AsyncIterator[list[Sequence[Endpoint]]]:
    """What the source publishes; it must leave no connection behind."""
    lists: list[Sequence[Endpoint]] = []
    before = sockets()
    task = asyncio.create_task(
        KubeEndpoints(CONFIG, find_access({"KUBECONFIG": str(cluster.kubeconfig)})).run(lists.append)
    )
    yield lists
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await until(lambda: sockets() <= before)  # TLS connections close in a moment, not at once


def kubectl(cluster: FastCluster, *arguments: str) -> Any:
    return asyncio.to_thread(cluster.kubectl, *arguments)


async def run_pod(cluster: FastCluster, name: str, ip: str, uid: str = "u1") -> None:
    """A pod as a kubelet would have it."""
    label = f"{names.LABEL_SERVICE_UID}={uid}"
    await kubectl(cluster, "run", name, "--image=none", f"--labels={label}")
    status = json.dumps({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}})
    await kubectl(cluster, "patch", "pod", name, "--subresource=status", "--type=merge", f"--patch={status}")


async def test_pods_of_the_service_come_and_go(cluster: FastCluster, published: list[Sequence[Endpoint]]) -> None:
    await run_pod(cluster, "one", "10.1.0.1")
    await run_pod(cluster, "stranger", "10.1.0.9", "u2")
    await until(lambda: published and [(e.name, e.ip) for e in published[-1]] == [("one", "10.1.0.1")], 20)
    await run_pod(cluster, "two", "10.1.0.2")
    await until(lambda: sorted(e.name for e in published[-1]) == ["one", "two"], 20)
    await kubectl(cluster, "delete", "pod", "one", "--now", "--wait=false")
    await until(lambda: [e.name for e in published[-1] if not e.terminating] == ["two"], 20)


async def test_a_dead_api_server_changes_nothing(
    cluster: FastCluster, published: list[Sequence[Endpoint]], caplog: pytest.LogCaptureFixture
) -> None:
    await run_pod(cluster, "three", "10.1.0.3")
    await until(lambda: published and "three" in [e.name for e in published[-1]], 20)
    known = published[-1]
    cluster.processes.kill("kube-apiserver")
    await until(lambda: caplog.text.count("going on with the") >= 2)
    assert published[-1] == known
    cluster.processes.restart("kube-apiserver")
    await asyncio.to_thread(control_plane.wait_until_ready, cluster.kubectl, cluster.processes)
    await run_pod(cluster, "four", "10.1.0.4")
    await until(lambda: "four" in [e.name for e in published[-1]], 20)
