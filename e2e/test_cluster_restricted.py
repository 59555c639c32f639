# SPDX-License-Identifier: Apache-2.0
"""A namespace that enforces the `restricted` level runs a pod that satisfies it and refuses one that does not."""

from collections.abc import Iterator

import pytest

from gscluster import probes
from gscluster.cluster import Cluster
from gscluster.errors import ClusterError
from gscluster.existing import ExistingCluster

pytestmark = pytest.mark.e2e

NAMESPACE = "probe-restricted"


@pytest.fixture(autouse=True)
def namespace(cluster: Cluster | ExistingCluster) -> Iterator[None]:
    cluster.kubectl.apply(probes.namespace(NAMESPACE))
    yield
    cluster.kubectl("delete", "namespace", NAMESPACE)


def test_a_restricted_pod_gets_its_gpus_and_runs_as_its_user(cluster: Cluster | ExistingCluster) -> None:
    cluster.kubectl.apply(probes.server_pod("server", NAMESPACE, gpus=8))
    cluster.kubectl("wait", "--for=condition=Ready", "pod/server", "-n", NAMESPACE, "--timeout=170s")
    user_id = cluster.kubectl("exec", "-n", NAMESPACE, "server", "--", "id", "-u")
    assert user_id.strip() == str(probes.USER_ID)


def test_a_pod_with_privileges_is_refused(cluster: Cluster | ExistingCluster) -> None:
    pod = probes.server_pod("server", NAMESPACE)
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    with pytest.raises(ClusterError, match='violates PodSecurity "restricted:latest": privileged'):
        cluster.kubectl.apply(pod)
