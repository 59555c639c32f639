# SPDX-License-Identifier: Apache-2.0
"""One API server and one operator for most tests, a namespace for each."""

import itertools
from collections.abc import Iterator

import pytest

from gscluster.fast import FastCluster, fast_cluster
from tests.functional.operator.world import Operator, Space, install, operator

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[FastCluster]:
    """An API server without controllers: what a test does not do does not happen."""
    with fast_cluster() as running:
        install(running)
        yield running


@pytest.fixture(scope="module")
def leader(cluster: FastCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """An operator that leads."""
    with operator(cluster, tmp_path_factory.mktemp("operator")) as one:
        yield one


@pytest.fixture
def space(cluster: FastCluster) -> Iterator[Space]:
    """A namespace of the test's own."""
    one = Space(cluster, f"space-{next(_numbers)}")
    try:
        yield one
    finally:
        one.kubelet.close()
        cluster.kubectl("delete", "gsvc", "--all", "-n", one.name, "--wait=false")
