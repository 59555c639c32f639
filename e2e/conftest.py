# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that use Gearshift as a user does: the installed chain, and a namespace for each test."""

import re
from collections.abc import Iterator

import pytest

from gscluster.cluster import Cluster
from gsstack.chain import Chain
from gsstack.space import Space


@pytest.fixture(scope="session")
def chain(own_cluster: Cluster) -> Chain:
    """Operator and Prometheus, installed once; they end with the cluster."""
    return Chain.install(own_cluster)


@pytest.fixture
def space(chain: Chain, request: pytest.FixtureRequest) -> Iterator[Space]:
    """A namespace that enforces the `restricted` level, gone afterwards with all that the test made."""
    own = Space(chain.kubectl, re.sub("[^a-z0-9]+", "-", request.node.name.lower())[:50].strip("-"))
    yield own
    own.end()
