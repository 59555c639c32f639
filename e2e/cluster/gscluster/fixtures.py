# SPDX-License-Identifier: Apache-2.0
"""Pytest fixtures: a cluster with nodes for e2e, an API server for functional tests.

GEARSHIFT_E2E_CLUSTER=existing takes the cluster of KUBECONFIG, whose nodes must have the images; tests that need
`own_cluster` are skipped. GEARSHIFT_E2E_KEEP=1 leaves the cluster up afterwards: the next session takes it over, and
`python -m gscluster --name e2e down` ends it.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gscluster import lifecycle
from gscluster.cluster import Cluster
from gscluster.existing import ExistingCluster
from gscluster.fast import FastCluster, fast_cluster
from gscluster.settings import ClusterSettings

SESSION = ClusterSettings(name="-".join(["e2e", *os.environ.get("PYTEST_XDIST_WORKER", "").split()]))
"""Tests that run side by side (pytest-xdist) have a cluster each."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster | ExistingCluster]:
    """A cluster with two nodes of 8 GPUs each and the project's images, or the user's own."""
    if os.environ.get("GEARSHIFT_E2E_CLUSTER") == "existing":
        yield ExistingCluster.from_environment()
        return
    found = lifecycle.find(SESSION.name)
    if found is not None and found.problems():
        lifecycle.down(SESSION.name)  # what an interrupted session has left
    yield lifecycle.up(SESSION).cluster
    if not os.environ.get("GEARSHIFT_E2E_KEEP"):
        lifecycle.down(SESSION.name)


@pytest.fixture(scope="session")
def own_cluster(cluster: Cluster | ExistingCluster) -> Cluster:
    """The same, for tests that do to it what nobody may do to a user's cluster: faults, its log files, its spaces."""
    if isinstance(cluster, ExistingCluster):
        pytest.skip("needs a cluster of its own, and GEARSHIFT_E2E_CLUSTER=existing")
    return cluster


@pytest.fixture(scope="session")
def fast_api_server() -> Iterator[FastCluster]:
    """etcd, API server, controller manager and scheduler on loopback, without nodes."""
    with fast_cluster(controllers=True) as running:
        yield running


@pytest.fixture(scope="session")
def api_server(fast_api_server: FastCluster) -> Path:
    """The kubeconfig of an administrator of `fast_api_server`."""
    return fast_api_server.kubeconfig
