# SPDX-License-Identifier: Apache-2.0
"""Children of a service: made, owned, kept as they should be, and written no more than needed."""

import json
import time

import pytest

from gearshift.api import names
from gscluster.audit import AuditLog
from tests.functional.operator.world import Operator, Space, until

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("leader")]

KINDS = (
    "pods", "services", "deployments", "serviceaccounts", "roles", "rolebindings", "poddisruptionbudgets",
    "networkpolicies",
)  # fmt: skip
SPLIT = {"roles": [{"name": "Prefill"}, {"name": "Decode", "replicas": 2}]}


def versions(space: Space) -> dict[str, str]:
    """Resource version of every child."""
    found = [
        body
        for body in space.items(*KINDS, "gsvc")
        if "ownerReferences" in body["metadata"] or body["kind"] == names.KIND
    ]
    return {f"{body['kind']}/{body['metadata']['name']}": body["metadata"]["resourceVersion"] for body in found}


def test_every_child_exists_and_is_owned_by_the_service(space: Space) -> None:
    space.apply(**SPLIT)
    until(lambda: len(versions(space)) == 13, "13 objects")
    uid = space.get("gsvc", "chat")["metadata"]["uid"]
    owned = [
        body for body in space.items(*KINDS) if body["metadata"].get("labels", {}).get(names.LABEL_SERVICE_UID) == uid
    ]
    assert sorted(f"{body['kind']}/{body['metadata']['name']}" for body in owned) == [
        "Deployment/chat-router", "NetworkPolicy/chat", "Pod/chat-0", "Pod/chat-1", "Pod/chat-2",
        "PodDisruptionBudget/chat", "Role/chat-router", "RoleBinding/chat-router", "Service/chat-pods",
        "Service/chat-router", "ServiceAccount/chat-engine", "ServiceAccount/chat-router",
    ]  # fmt: skip
    for body in owned:
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (uid, True, True)


def test_pods_start_in_the_roles_that_the_spec_asks_for(space: Space) -> None:
    space.apply(**SPLIT)
    sidecars = space.kubelet.run_all(3)
    assert sorted(sidecar.state.role.value for sidecar in sidecars.values()) == ["Decode", "Decode", "Prefill"]


def test_a_second_apply_of_the_same_manifest_writes_nothing(space: Space) -> None:
    space.apply(**SPLIT)
    space.serve(3)
    before = versions(space)
    space.apply(**SPLIT)
    time.sleep(2)  # four ticks in which a write could happen
    assert versions(space) == before


def test_a_quiet_service_costs_no_writes_but_the_lease(space: Space) -> None:
    space.apply(**SPLIT)
    space.serve(3)
    log = AuditLog(space.cluster.audit_log)
    until(lambda: space.condition("Reconciling").get("status") == "False", "the service to be quiet")
    log.mark()
    time.sleep(4)  # eight ticks
    writes = [write for write in log.writes("gearshift-operator") if write.resource != "leases"]
    assert writes == []


def test_a_child_that_someone_deletes_comes_back(space: Space) -> None:
    space.apply()
    until(lambda: space.items("networkpolicies"), "the network policy")
    space.cluster.kubectl("delete", "networkpolicy", "chat", "-n", space.name)
    until(lambda: space.items("networkpolicies"), "the network policy to come back")


def test_a_child_that_someone_changes_is_put_right(space: Space) -> None:
    space.apply()
    until(lambda: space.items("poddisruptionbudgets"), "the budget")
    patch = json.dumps({"spec": {"minAvailable": 7}})
    space.cluster.kubectl("patch", "pdb", "chat", "-n", space.name, "--type=merge", "-p", patch)
    until(lambda: space.get("pdb", "chat")["spec"]["minAvailable"] == 0, "the budget to be put right")


def test_an_object_of_someone_else_is_left_alone_and_reported(space: Space) -> None:
    space.cluster.kubectl("create", "service", "clusterip", "chat-router", "--tcp=1:1", "-n", space.name)
    before = space.get("service", "chat-router")
    space.apply()
    until(lambda: space.condition("Stalled").get("status") == "True", "the service to be stalled")
    assert space.condition("Stalled")["reason"] == "ChildConflict"
    assert "Service chat-router" in space.condition("Stalled")["message"]
    assert space.get("service", "chat-router") == before
    space.cluster.kubectl("delete", "service", "chat-router", "-n", space.name)
    until(lambda: space.condition("Stalled").get("status") == "False", "the service to go on")
    assert space.get("service", "chat-router")["metadata"]["ownerReferences"]


def test_the_operator_asks_for_nothing_that_its_role_does_not_give(space: Space, leader: Operator) -> None:
    space.apply(**SPLIT)
    space.serve(3)
    lines = space.cluster.audit_log.read_text().splitlines()
    mine = [event for event in map(json.loads, lines) if "gearshift-operator" in event["user"]["username"]]
    refused = [event["requestURI"] for event in mine if event.get("responseStatus", {}).get("code") == 403]
    assert mine
    assert refused == []
    assert "Forbidden" not in leader.log
