# SPDX-License-Identifier: Apache-2.0
"""The API server goes away and comes back."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gscluster import faults
from gscluster.fast import FastCluster, fast_cluster
from tests.functional.operator.world import Space, install, operator, until

pytestmark = pytest.mark.functional


@pytest.fixture
def cluster() -> Iterator[FastCluster]:
    """One of its own, since it is taken away."""
    with fast_cluster() as running:
        install(running)
        yield running


@pytest.mark.parametrize("fault", [faults.api_server_down, faults.api_server_paused], ids=["killed", "paused"])
def test_work_goes_on_soon_after_the_api_server_is_back(
    cluster: FastCluster, space: Space, tmp_path: Path, fault: object
) -> None:
    with operator(cluster, tmp_path) as one:
        space.apply()
        (sidecar,) = space.serve(1).values()
        asked = len(sidecar.tokens)
        with fault(cluster):  # type: ignore[operator]
            time.sleep(14)  # longer than the lease may go without renewal
            assert one.process.poll() is None
        until(lambda: cluster.kubectl.succeeds("get", "--raw", "/readyz"), "the API server", 120)
        back = time.monotonic()
        space.apply(roles=[{"name": "Unified", "replicas": 2}])
        space.kubelet.run_all(2, 60)
        until(lambda: space.status()["readyReplicas"] == 2, "the second pod to serve", 120)
        assert time.monotonic() - back < 60
        assert len(sidecar.tokens) > asked
