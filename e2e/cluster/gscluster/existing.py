# SPDX-License-Identifier: Apache-2.0
"""A cluster of the user's, for tests that need nothing but its API."""

import dataclasses
import os
from pathlib import Path

from gscluster.errors import ClusterError
from gscluster.kubectl import Kubectl


@dataclasses.dataclass(frozen=True)
class ExistingCluster:
    """Offers what `Cluster` offers too: `kubeconfig` and `kubectl`."""

    kubeconfig: Path

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.kubeconfig)

    @classmethod
    def from_environment(cls) -> "ExistingCluster":
        """Return the cluster of KUBECONFIG; raise ClusterError when that names no file or no cluster that answers."""
        named = os.environ.get("KUBECONFIG", "")
        if not Path(named).is_file():
            raise ClusterError(f"KUBECONFIG={named!r} is no file, and GEARSHIFT_E2E_CLUSTER=existing needs one")
        cluster = cls(Path(named))
        cluster.kubectl("version", "--request-timeout=10s")
        return cluster
