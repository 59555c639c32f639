# SPDX-License-Identifier: Apache-2.0
"""Operators that follow each other or run at the same time, and lists from the past: all end where the spec says."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gearshift.api import names
from gscluster.audit import AuditLog
from gscluster.fast import FastCluster
from tests.functional.operator.faults import Call, writing
from tests.functional.operator.oracle import as_the_spec_says, settles, writes
from tests.functional.operator.proxy import Proxy
from tests.functional.operator.test_children import KINDS
from tests.functional.operator.test_leader import lease_or_none, token
from tests.functional.operator.world import OWN_NAMESPACE, Operator, Space, operator, until

pytestmark = pytest.mark.functional

HASTY = {"window": "5s", "dwell": "1s", "cooldown": "1s"}
EXPECTED = [
    "Deployment/chat-router", "NetworkPolicy/chat", "Pod/chat-0", "Pod/chat-1", "Pod/chat-2",
    "PodDisruptionBudget/chat", "Role/chat-router", "RoleBinding/chat-router", "Service/chat-pods",
    "Service/chat-router", "ServiceAccount/chat-engine", "ServiceAccount/chat-router",
]  # fmt: skip


@pytest.fixture
def proxy(cluster: FastCluster) -> Iterator[Proxy]:
    """On the way of one operator."""
    one = Proxy(cluster)
    yield one
    one.close()


def unified(pods: int) -> list[dict[str, object]]:
    """Roles of a spec that asks for so many pods."""
    return [{"name": "Unified", "replicas": pods}]


def children(space: Space) -> list[str]:
    """Kind and name of everything that the operator made."""
    found = [body for body in space.items(*KINDS) if names.LABEL_SERVICE_UID in body["metadata"].get("labels", {})]
    return sorted(f"{body['kind']}/{body['metadata']['name']}" for body in found)


def free_the_lease(cluster: FastCluster) -> None:
    """As it is once a dead leader's lease has expired."""
    if lease_or_none(cluster) is not None:
        patch = json.dumps({"spec": {"holderIdentity": ""}})
        cluster.kubectl("patch", "lease", "gearshift-operator", "-n", OWN_NAMESPACE, "--type=merge", "-p", patch)


def test_an_operator_that_dies_at_each_of_its_writes(
    cluster: FastCluster, space: Space, proxy: Proxy, tmp_path: Path
) -> None:
    log = AuditLog(cluster.audit_log)
    log.mark()
    space.apply(roles=[{"name": "Prefill"}, {"name": "Decode", "replicas": 2}])
    deaths = 0
    while not (children(space) == EXPECTED and space.status()):
        free_the_lease(cluster)
        one = Operator(cluster, tmp_path, f"life-{deaths}", server=proxy.url)
        proxy.after_write = lambda _, life=one: life.process.kill()
        one.start()
        assert one.process.wait(30) == -signal.SIGKILL
        deaths += 1
    assert deaths >= len(EXPECTED)
    proxy.after_write = None
    free_the_lease(cluster)
    with operator(cluster, tmp_path, server=proxy.url):
        space.kubelet.run_all(3)
        space.run_router()
        settles([space], lambda one: as_the_spec_says(one, 3), "three pods and all children")
    assert [write for write in writes(log, [space]) if 400 <= write.status < 500] == []


def test_a_write_of_a_leader_that_was_replaced_while_it_was_on_its_way(
    cluster: FastCluster, space: Space, proxy: Proxy, tmp_path: Path
) -> None:
    free_the_lease(cluster)
    space.apply(roles=unified(1), policy=HASTY)
    first = Operator(cluster, tmp_path, "first", server=proxy.url).start()
    until(first.leads, "the first to lead", 120)
    space.serve(1)
    (kept,) = (pod["metadata"]["uid"] for pod in space.kubelet.pods())
    with proxy.gate(creates_pods):
        space.apply(roles=unified(2), policy=HASTY)
        until(lambda: proxy.waiting, "a pod to be asked for")
        first.process.send_signal(signal.SIGSTOP)
        written = len(proxy.written)
        space.apply(roles=unified(1), policy=HASTY)
        second = Operator(cluster, tmp_path, "second").start()
        until(second.leads, "the second to lead", 120)
        assert token(second) > token(first)
        first.process.send_signal(signal.SIGCONT)
        assert first.process.wait(20) == 3
    until(lambda: len(proxy.written) > written, "the late write to arrive")
    until(lambda: len(space.kubelet.pods()) == 2 or space.kubelet.pods()[0]["metadata"]["uid"] == kept, "its effect")
    settles([space], lambda one: as_the_spec_says(one, 1), "one pod")
    assert [pod["metadata"]["uid"] for pod in space.kubelet.pods()] == [kept]
    assert [call.path for call in proxy.written[written:]] == [f"/api/v1/namespaces/{space.name}/pods"]
    assert second.stop() == 0
    assert "this is a defect" not in first.log + second.log


def creates_pods(call: Call) -> bool:
    """Calls that make a pod."""
    return writing(call) and call.method == "POST" and call.path.endswith("/pods")


def test_lists_from_the_past_take_nothing_away(
    cluster: FastCluster, space: Space, proxy: Proxy, tmp_path: Path
) -> None:
    free_the_lease(cluster)
    with operator(cluster, tmp_path, server=proxy.url, resync_seconds="5"):
        space.apply(roles=unified(1))
        space.serve(1)
        with proxy.lagging():
            space.apply(roles=unified(3))
            space.serve(3)
            before = space.uids()
            proxy.break_watches("gone")
            until(lambda: len([path for path in proxy.lagged if "inferenceservices" in path]) >= 2, "old lists", 120)
            settles([space], lambda one: as_the_spec_says(one, 3), "three pods and all children")
        assert space.uids() == before


def test_an_operator_that_begins_with_lists_from_the_past(
    cluster: FastCluster, space: Space, proxy: Proxy, tmp_path: Path
) -> None:
    free_the_lease(cluster)
    first = Operator(cluster, tmp_path, "first", server=proxy.url).start()
    until(first.leads, "the first to lead", 120)
    space.apply(roles=unified(2), policy=HASTY)
    space.serve(2)
    old = space.uids()
    with proxy.lagging():
        space.kubelet.lose(max(old))
        settles([space], lambda one: as_the_spec_says(one, 2), "another pod")
        now = space.uids()
        assert first.stop() == 0
        with operator(cluster, tmp_path, "second", server=proxy.url):
            assert proxy.lagged
            settles([space], lambda one: as_the_spec_says(one, 2), "two pods and all children")
    assert space.uids() == now
    assert len(now & old) == 1
