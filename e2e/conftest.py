# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that use Gearshift as a user does: the installed chain, and a namespace for each test."""

import os
import re
from collections.abc import Iterator

import pytest

from gscluster.cluster import Cluster
from gscluster.existing import ExistingCluster
from gscluster.kubectl import Kubectl
from gsstack import install
from gsstack.chain import OPERATOR, Chain, settings
from gsstack.space import Space

PROMETHEUS = os.environ.get("GEARSHIFT_E2E_PROMETHEUS")


@pytest.fixture(scope="session")
def chain(own_cluster: Cluster) -> Chain:
    """Operator and Prometheus, installed once; they end with the cluster."""
    return Chain.install(own_cluster)


@pytest.fixture(scope="session")
def installed(cluster: Cluster | ExistingCluster, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A cluster with Gearshift: the chain on our own one; on a user's one the operator, which is removed afterwards.

    An operator that a user's cluster has already is taken as it is, and stays.
    """
    if isinstance(cluster, Cluster):
        yield request.getfixturevalue("chain").kubectl
    elif cluster.kubectl.succeeds("get", OPERATOR, "-n", install.OPERATOR_NAMESPACE):
        yield cluster.kubectl
    else:
        install.install(cluster.kubectl, settings(PROMETHEUS))
        yield cluster.kubectl
        install.uninstall(cluster.kubectl)


@pytest.fixture
def metrics(cluster: Cluster | ExistingCluster) -> None:
    """Skip the test where the operator has no Prometheus."""
    if isinstance(cluster, ExistingCluster) and not PROMETHEUS:
        pytest.skip("needs GEARSHIFT_E2E_PROMETHEUS, a Prometheus that scrapes the user's cluster every second")


@pytest.fixture
def space(installed: Kubectl, request: pytest.FixtureRequest) -> Iterator[Space]:
    """A namespace that enforces the `restricted` level, gone afterwards with all that the test made."""
    own = Space(installed, re.sub("[^a-z0-9]+", "-", request.node.name.lower())[:50].strip("-"))
    yield own
    own.end()
