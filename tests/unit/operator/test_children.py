# SPDX-License-Identifier: Apache-2.0
"""The other children, and how a live one is compared with the wanted one."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from gearshift.api import names
from gearshift.operator.manifests.children import as_applied, build_children
from gearshift.operator.manifests.disruption import build_budget
from gearshift.operator.resources import BY_KIND
from tests.unit.operator.builders import INSTALLATION, owner


def children(**fields: Any) -> dict[str, dict[str, Any]]:
    """Children by kind and name."""
    return {
        f"{body['kind']}/{body['metadata']['name']}": body for body in build_children(owner(**fields), INSTALLATION)
    }


def test_selectors_hold_immutable_labels_only() -> None:
    built = children()
    found = [
        built["Service/chat-pods"]["spec"]["selector"],
        built["Service/chat-router"]["spec"]["selector"],
        built["Deployment/chat-router"]["spec"]["selector"]["matchLabels"],
        built["PodDisruptionBudget/chat"]["spec"]["selector"]["matchLabels"],
        built["NetworkPolicy/chat"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert {frozenset(selector) for selector in found} == {frozenset({names.LABEL_SERVICE_UID, names.LABEL_COMPONENT})}


@pytest.mark.parametrize(("fields", "floor"), [({}, 0), ({"replicas": 4}, 3), ({"replicas": 0}, 0)])
def test_evictions_take_one_pod_at_a_time(fields: dict[str, Any], floor: int) -> None:
    assert children(**fields)["PodDisruptionBudget/chat"]["spec"]["minAvailable"] == floor


def test_evictions_follow_the_number_of_pods_that_scaling_wants() -> None:
    """Not the number at start: that could let all pods go, or none."""
    scaled = owner(roles=[{"name": "Unified", "replicas": 2, "max": 8}])
    floors = [build_budget(scaled, pods)["spec"]["minAvailable"] for pods in (None, 1, 6)]
    assert floors == [1, 0, 5]


@pytest.mark.parametrize(
    ("router", "replicas"),
    [
        ({}, 1),
        ({"replicas": 3}, 3),
        ({"scaling": {"owner": "Gearshift"}}, 1),
        ({"scaling": {"owner": "External"}}, None),
    ],
)
def test_replicas_of_the_router_are_left_to_whoever_scales_it(router: dict[str, Any], replicas: int | None) -> None:
    """A field that is not applied is not owned, so a Deployment that an HPA has scaled is as it should be."""
    wanted = children(router=router)["Deployment/chat-router"]
    assert wanted["spec"].get("replicas") == replicas
    scaled = copy.deepcopy(wanted)
    scaled["spec"]["replicas"] = 7
    assert as_applied(scaled, wanted) == (replicas is None)


def test_the_control_port_is_open_to_operator_and_router_only() -> None:
    rules = children()["NetworkPolicy/chat"]["spec"]["ingress"]
    control = [rule for rule in rules if any(port["port"] == names.PORT_CONTROL for port in rule.get("ports", []))]
    assert len(control) == 2
    assert all("from" in rule for rule in control)
    router, operator = (rule["from"][0] for rule in control)
    assert router["podSelector"]["matchLabels"][names.LABEL_COMPONENT] == names.COMPONENT_ROUTER
    assert operator["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "gearshift-system"}


def test_the_monitoring_namespace_is_let_through_to_the_engines() -> None:
    built = build_children(owner(), replace(INSTALLATION, monitoring_namespace="monitoring"))
    (policy,) = (body for body in built if body["kind"] == "NetworkPolicy")
    last = policy["spec"]["ingress"][-1]
    assert last["from"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "monitoring"}
    assert {port["port"] for port in last["ports"]} == {names.PORT_SIDECAR_METRICS, names.PORT_ENGINE}


def test_the_router_may_read_endpoints_and_pods_and_nothing_else() -> None:
    rules = children()["Role/chat-router"]["rules"]
    assert {resource for rule in rules for resource in rule["resources"]} == {"pods", "endpointslices"}
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_a_live_object_with_defaults_and_dropped_falsehoods_is_as_applied() -> None:
    wanted = children()["Service/chat-pods"]
    live = copy.deepcopy(wanted)
    live["metadata"] |= {"resourceVersion": "5", "uid": "u"}
    live["spec"] |= {"sessionAffinity": "None"}
    del live["spec"]["publishNotReadyAddresses"]
    assert as_applied(live, wanted)


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["spec"]["ports"].pop(),
        lambda body: body["spec"]["selector"].update({names.LABEL_SERVICE_UID: "other"}),
        lambda body: body["spec"].update(publishNotReadyAddresses=True),
        lambda body: body["metadata"]["ownerReferences"].clear(),
        lambda body: body["metadata"]["annotations"].clear(),
    ],
)
def test_a_changed_object_is_not_as_applied(change: Any) -> None:
    wanted = children()["Service/chat-pods"]
    live = copy.deepcopy(wanted)
    change(live)
    assert not as_applied(live, wanted)
    assert not as_applied(None, wanted)


def test_the_operator_role_covers_every_kind_without_wildcards(request: pytest.FixtureRequest) -> None:
    path = request.config.rootpath / "config/rbac/clusterrole.yaml"
    rules = yaml.safe_load(path.read_text())["rules"]
    given = {
        (group, resource): set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    for resource in BY_KIND.values():
        assert {"get", "list", "watch", "create"} <= given[resource.group, resource.plural]
    assert not {verb for verbs in given.values() for verb in verbs} & {"*", "escalate", "bind", "impersonate"}
    assert not {resource for _, resource in given} & {"*", "secrets", "pods/exec"}
