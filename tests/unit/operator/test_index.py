# SPDX-License-Identifier: Apache-2.0
"""The index: the order of watches, listings and answers to writes does not matter."""

import itertools
from typing import Any

import pytest

from gearshift.api.vocabulary import Layout, Role
from gearshift.operator.index import Index
from gearshift.operator.manifests.disruption import build_budget
from gearshift.operator.manifests.pod import build_pod
from tests.unit.operator.builders import INSTALLATION, owner


def ignore(_: str) -> None:
    """Nobody to wake."""


def live_pod(uid: str = "pod-1", version: int = 10, **metadata: Any) -> dict[str, Any]:
    """A pod as the API server returns it."""
    body = build_pod(owner(), INSTALLATION, 0, Role.UNIFIED, Layout.TP)
    created = {"uid": uid, "resourceVersion": str(version), "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {**body, "metadata": {**body["metadata"], **created, **metadata}}


def live_service(uid: str, version: int) -> dict[str, Any]:
    """A service as the API server returns it."""
    return {"metadata": {"namespace": "prod", "name": "chat", "uid": uid, "resourceVersion": str(version)}, "spec": {}}


def test_an_older_version_does_not_replace_a_newer_one() -> None:
    index = Index(ignore)
    index.put_pod(live_pod(version=11, deletionTimestamp="2026-01-01T00:00:09Z"))
    index.put_pod(live_pod(version=10))
    assert index.pods["uid-1"]["chat-0"].deleting


def test_the_answer_to_a_deletion_does_not_bring_a_gone_pod_back() -> None:
    index = Index(ignore)
    index.put_pod(live_pod())
    index.drop_pod("uid-1", "chat-0", "pod-1")
    index.put_pod(live_pod(version=12, deletionTimestamp="2026-01-01T00:00:09Z"))
    assert not index.pods


def test_a_late_deletion_takes_only_its_own_uid() -> None:
    for order in itertools.permutations((0, 1)):
        index = Index(ignore)
        index.put_pod(live_pod("old"))
        steps = (lambda: index.put_pod(live_pod("new", 20)), lambda: index.drop_pod("uid-1", "chat-0", "old"))  # noqa: B023
        for number in order:
            steps[number]()
        assert index.pods["uid-1"]["chat-0"].uid == "new"


def test_a_service_made_again_under_its_name_takes_the_place_of_one_whose_deletion_was_missed() -> None:
    woken: list[str] = []
    index = Index(woken.append)
    index.put_service(live_service("old", 10))
    index.put_service(live_service("new", 20))
    assert list(index.services) == ["new"]
    assert woken == ["old", "old", "new"]
    index.put_service(live_service("old", 15))
    assert list(index.services) == ["new"]


def test_a_service_whose_name_a_newer_one_has_does_not_come_back_by_a_late_word() -> None:
    index = Index(ignore)
    index.put_service(live_service("new", 20))
    index.put_service(live_service("old", 15))
    assert list(index.services) == ["new"]


def test_a_status_wakes_nobody_and_a_new_wish_does() -> None:
    woken: list[str] = []
    index = Index(woken.append)
    body = live_service("uid-1", 10)
    index.put_service(body)
    index.put_service({**live_service("uid-1", 11), "status": {"replicas": 2}})
    assert (index.services["uid-1"]["status"], woken) == ({"replicas": 2}, ["uid-1"])
    wishes: list[dict[str, Any]] = [{"generation": 2}, {"annotations": {"a": "b"}}, {"deletionTimestamp": "now"}]
    for version, wish in enumerate(wishes, 12):
        body = live_service("uid-1", version)
        index.put_service({**body, "metadata": {**body["metadata"], **wish}})
    assert woken == ["uid-1"] * 4


def test_a_version_that_says_nothing_new_wakes_nobody() -> None:
    woken: list[str] = []
    index = Index(woken.append)
    body, child = live_pod(version=10), build_budget(owner())
    child["metadata"] |= {"uid": "child-1", "resourceVersion": "11", "annotations": {"gearshift.dev/applied": "d"}}
    index.put_pod(body)
    index.put_child(child)
    index.put_pod({**live_pod(version=12), "status": {"qosClass": "Burstable"}})
    index.put_child(
        {**child, "metadata": {**child["metadata"], "resourceVersion": "13"}, "status": {"currentHealthy": 1}}
    )
    assert woken == ["uid-1", "uid-1"]
    index.put_pod({**live_pod(version=14), "status": {"podIP": "10.0.0.1"}})
    index.put_child({**child, "metadata": {**child["metadata"], "resourceVersion": "15"}, "spec": {}})
    assert woken == ["uid-1"] * 4


def test_nothing_is_left_of_a_service_that_is_gone() -> None:
    index = Index(ignore)
    index.put_service(live_service("uid-1", 10))
    index.put_pod(live_pod())
    child = build_budget(owner())
    child["metadata"] |= {"uid": "child-1", "resourceVersion": "11"}
    index.put_child(child)
    index.drop_service(live_service("uid-1", 10))
    index.put_pod(live_pod(version=12, deletionTimestamp="2026-01-01T00:00:09Z"))
    index.put_child({**child, "metadata": {**child["metadata"], "resourceVersion": "12"}})
    index.drop_pod("uid-1", "chat-0", "pod-1")
    index.drop_child(child)
    assert (dict(index.services), dict(index.pods), dict(index.children)) == ({}, {}, {})


def test_only_changes_wake_and_nodes_wake_those_who_use_them() -> None:
    woken: list[str] = []
    index = Index(woken.append)
    body = live_pod()
    index.put_pod({**body, "spec": {**body["spec"], "nodeName": "n1"}})
    index.put_pod({**body, "spec": {**body["spec"], "nodeName": "n1"}})
    assert woken == ["uid-1"]
    node = {"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    index.put_node(node)
    index.put_node(node)
    index.put_node({**node, "metadata": {"name": "n2"}})
    assert woken == ["uid-1", "uid-1"]


@pytest.mark.parametrize("labels", [{}, {"gearshift.dev/service-uid": "uid-1"}])
def test_pods_of_others_are_not_kept(labels: dict[str, str]) -> None:
    index = Index(ignore)
    index.put_pod({"metadata": {"name": "x-0", "namespace": "prod", "uid": "u", "labels": labels}, "spec": {}})
    assert not any(index.pods.values())
