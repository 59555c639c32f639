# SPDX-License-Identifier: Apache-2.0
"""The kinds of objects that the operator reads or writes, and their paths, without asking the API server for a list."""

from dataclasses import dataclass
from typing import Final

from gearshift.api import names


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``apiVersion`` of its manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of the collection, of one object, or of a subresource of it."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part is not None]
        return "/" + "/".join(parts)


SERVICES_OF_INFERENCE: Final = Resource(names.GROUP, names.VERSION, names.PLURAL, names.KIND)
PODS: Final = Resource("", "v1", "pods", "Pod")
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event")
SELF_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)

CHILD_KINDS: Final = (
    Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    Resource("", "v1", "services", "Service"),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
)
"""Children that are applied and kept as they should be; pods are created and deleted one by one instead."""

BY_KIND: Final = {resource.kind: resource for resource in (*CHILD_KINDS, PODS)}
