# SPDX-License-Identifier: Apache-2.0
"""The cluster that the operator is measured on: API server, controllers, kwok, sidecars, services and their pods."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.scale import netns, objects
from bench.scale.api import Api
from bench.scale.process import environment, install
from gearshift.operator.resources import BY_KIND, NODES, PODS, SERVICES_OF_INFERENCE, Resource
from gscluster import control_plane, paths
from gscluster.fast import DIE_WITH_US, FastCluster, fast_cluster
from gscluster.kwok import MARK
from gscluster.pki import Authority

Json = dict[str, Any]
IMAGE: Final = "gearshift.local/gearshift:bench"
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_CONTROLLERS: Final = "deployment-controller,replicaset-controller,disruption-controller,node-lifecycle-controller"
_NODE_GRACE_SECONDS: Final = 40
_SERVICES_AT_ONCE: Final = 4
_SETTLE_SECONDS: Final = 1800.0


@contextlib.contextmanager
def machines(state: Path | None = None) -> Iterator[FastCluster]:
    """An API server with kwok; ``state``: a folder with what its etcd begins with."""
    with fast_cluster(state=state) as cluster:
        install(cluster)
        argv: list[Any] = [paths.cached_program("kwok"), "--kubeconfig", cluster.kubeconfig, "--cidr", netns.POD_BLOCK]
        argv += ["--manage-all-nodes=false", "--manage-nodes-with-annotation-selector", f"{MARK}=fake"]
        argv += ["--node-lease-duration-seconds=40", "--server-address=127.0.0.1:0"]
        cluster.processes.start("kwok", [*DIE_WITH_US, *argv])
        yield cluster


def start_controllers(cluster: FastCluster) -> None:
    """Start the controllers whose work the operator sees, and the scheduler."""
    authority = Authority(cluster.folder / "pki")
    manager = control_plane.controller_manager(cluster.folder, cluster.endpoints, authority, _NODE_GRACE_SECONDS)
    scheduler = control_plane.scheduler(cluster.folder, cluster.endpoints, authority)
    cluster.processes.start("kube-controller-manager", [*DIE_WITH_US, *manager, f"--controllers={_CONTROLLERS}"])
    cluster.processes.start("kube-scheduler", [*DIE_WITH_US, *scheduler])


@contextlib.contextmanager
def sidecars(cluster: FastCluster) -> Iterator[None]:
    """One process that answers for the sidecars of all pods; ended on exit."""
    argv = [*DIE_WITH_US, sys.executable, "-m", "bench.scale.sidecars", str(cluster.kubeconfig)]
    with (cluster.folder / "logs/sidecars.log").open("wb") as log:
        process = subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE, stderr=log)
    assert process.stdout is not None
    try:
        if process.stdout.readline().strip() != b"ready":
            raise RuntimeError("the sidecars' process ended:\n" + (cluster.folder / "logs/sidecars.log").read_text())
        yield
    finally:
        process.kill()
        process.communicate()


async def populate(api: Api, services: int, pods: int) -> None:
    """Make nodes, services, children and pods, and wait until the pods run.

    Before the controllers start: they would write anew about the same service for each of its pods.
    """
    each = pods // services
    nodes = await api.create_all((NODES, node) for node in objects.nodes(pods + services))
    spaces = sorted({objects.namespace_of(number) for number in range(services)})
    await api.create_all((NAMESPACES, {"metadata": {"name": space}}) for space in spaces)
    made = await api.create_all((SERVICES_OF_INFERENCE, body) for body in objects.services(services, each))
    names = [node["metadata"]["name"] for node in nodes]
    installation = objects.installation(IMAGE)
    turns = asyncio.Semaphore(_SERVICES_AT_ONCE)

    async def equip(body: Json) -> None:
        async with turns:
            belongings = list(objects.belongings(body, names, installation))
            await api.create_all(item for item in belongings if item[0] is not PODS)  # pods need their account
            await api.create_all(item for item in belongings if item[0] is PODS)

    await asyncio.gather(*(equip(body) for body in made))
    async with asyncio.timeout(_SETTLE_SECONDS):
        while await api.any_that(PODS, "status.phase!=Running"):
            await asyncio.sleep(2)


async def routers_available(api: Api, services: int) -> None:
    """Wait until the router of each service is available."""
    async with asyncio.timeout(_SETTLE_SECONDS):
        while len([one for one in (await api.list_all(BY_KIND["Deployment"]))[0] if _available(one)]) < services:
            await asyncio.sleep(5)


def _available(deployment: Json) -> bool:
    return bool(deployment["status"].get("availableReplicas"))
