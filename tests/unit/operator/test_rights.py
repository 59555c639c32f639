# SPDX-License-Identifier: Apache-2.0
"""The rights in ``config/rbac`` are those that the code uses: no verb less, and no verb more."""

from pathlib import Path
from typing import Any

import yaml

from gearshift.operator.manifests import access
from gearshift.operator.resources import CHILD_KINDS, EVENTS, LEASES, NODES, PODS, SERVICES_OF_INFERENCE, Resource
from tests.unit.operator.builders import owner

CONFIG = Path(__file__).resolve().parents[3] / "config"
WATCH = {"list", "watch"}
APPLY = {"get", "create", "patch"}
Rights = set[tuple[str, str, str]]


def rights(role: dict[str, Any]) -> Rights:
    """Group, resource and verb of every rule."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def of(resource: Resource, verbs: set[str], part: str = "") -> Rights:
    """Verbs on a resource, or on a part of it."""
    return {(resource.group, resource.plural + part, verb) for verb in verbs}


def documents(file: str) -> list[dict[str, Any]]:
    """Objects of a file of ``config``."""
    return list(yaml.safe_load_all((CONFIG / file).read_text()))


def test_the_cluster_role_gives_what_the_code_uses() -> None:
    (role,) = documents("rbac/clusterrole.yaml")
    used = of(SERVICES_OF_INFERENCE, WATCH | {"get"}) | of(SERVICES_OF_INFERENCE, {"patch"}, "/status")
    used |= of(SERVICES_OF_INFERENCE, {"update"}, "/finalizers")  # blockOwnerDeletion of children
    used |= of(PODS, WATCH | {"get", "create", "delete"}) | of(NODES, WATCH) | of(EVENTS, {"create"})
    for resource in CHILD_KINDS:
        used |= of(resource, WATCH | APPLY)
    used |= rights(access.build_router_role(owner()))  # nobody can give what he has not
    assert rights(role) == used


def test_the_lease_role_gives_what_the_code_uses() -> None:
    role = next(body for body in documents("rbac/lease-role.yaml") if body["kind"] == "Role")
    assert rights(role) == of(LEASES, {"get", "create", "update"})
    named = [rule for rule in role["rules"] if "create" not in rule["verbs"]]
    assert [rule["resourceNames"] for rule in named] == [["gearshift-operator"]]
