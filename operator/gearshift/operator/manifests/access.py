# SPDX-License-Identifier: Apache-2.0
"""ServiceAccounts of engine pods and router, and what the router may read.

Sidecars check callers by TokenReview, which is cluster-scoped. That right comes from the one ClusterRoleBinding of the
installation (``config/rbac``) to all service accounts: it lets the holder of a token ask whose it is, nothing else.
A binding per service would need the right to bind roles, and could not be owned by a namespaced object, so it would
outlive the service.
"""

from gearshift.api import names
from gearshift.operator.manifests import meta
from gearshift.operator.manifests.meta import Manifest, Owner

_RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]


def build_engine_account(owner: Owner) -> Manifest:
    """Account of the engine pods; its token is mounted by the sidecar alone."""
    return _account(owner, names.engine_account_name(owner.name), names.COMPONENT_ENGINE)


def build_router_account(owner: Owner) -> Manifest:
    """Account of the router."""
    return _account(owner, names.router_name(owner.name), names.COMPONENT_ROUTER)


def build_router_role(owner: Owner) -> Manifest:
    """What the router reads: endpoints and pods of its namespace."""
    role = meta.child(owner, f"{_RBAC}/v1", "Role", names.router_name(owner.name), names.COMPONENT_ROUTER)
    role["rules"] = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ},
    ]
    return role


def build_router_binding(owner: Owner) -> Manifest:
    """Gives the role to the router."""
    name = names.router_name(owner.name)
    binding = meta.child(owner, f"{_RBAC}/v1", "RoleBinding", name, names.COMPONENT_ROUTER)
    binding["roleRef"] = {"apiGroup": _RBAC, "kind": "Role", "name": name}
    binding["subjects"] = [{"kind": "ServiceAccount", "name": name, "namespace": owner.namespace}]
    return binding


def _account(owner: Owner, name: str, component: str) -> Manifest:
    account = meta.child(owner, "v1", "ServiceAccount", name, component)
    account["automountServiceAccountToken"] = False
    return account
