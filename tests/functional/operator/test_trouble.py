# SPDX-License-Identifier: Apache-2.0
"""What stands in the way of a service is told, and passes without anyone deleting anything by hand."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gearshift.api.vocabulary import PodPhase, TransitionKind, TransitionResult
from gearshift.api.wire import TransitionStatus
from tests.functional.operator.sidecar import Sidecar
from tests.functional.operator.test_children import KINDS
from tests.functional.operator.world import Space, until

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("leader")]

TWO = {"roles": [{"name": "Unified", "replicas": 2}]}


def quota(space: Space, pods: str, used: str) -> None:
    """A quota of pods; its status is what a quota controller would write."""
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": space.name}}
    space.cluster.kubectl.apply({**body, "spec": {"hard": {"pods": pods}}})
    status = json.dumps({"status": {"hard": {"pods": pods}, "used": {"pods": used}}})
    space.cluster.kubectl(
        "patch", "resourcequota", "few", "-n", space.name, "--subresource=status", "--type=merge", "-p", status
    )


def test_a_quota_is_told_and_not_hammered_on(space: Space) -> None:
    quota(space, "1", "0")
    space.apply(**TWO)
    until(lambda: space.condition("Reconciling").get("reason") == "PodRefused", "the quota to be told")
    assert "exceeded quota" in space.condition("Reconciling")["message"]
    assert space.condition("Stalled")["status"] == "False"
    assert len(space.kubelet.pods()) == 1
    told = [event for event in space.items("events.v1.events.k8s.io") if event["reason"] == "PodRefused"]
    assert [(event["type"], "exceeded quota" in event["note"]) for event in told] == [("Warning", True)]
    quota(space, "2", "1")
    space.serve(2)


def test_what_an_earlier_namesake_left_is_waited_for_and_does_not_stall(space: Space) -> None:
    space.apply()
    space.serve(1)
    space.cluster.kubectl("delete", "gsvc", "chat", "-n", space.name)
    space.apply()
    until(lambda: space.condition("Reconciling").get("reason") == "PredecessorLeaving", "the remains to be told")
    assert space.condition("Stalled")["status"] == "False"
    for body in space.items(*KINDS):  # no collector of garbage runs here
        if "ownerReferences" in body["metadata"]:
            argv = (body["kind"], body["metadata"]["name"], "-n", space.name)
            space.cluster.kubectl("delete", *argv, "--force", "--grace-period=0", "--wait=false", "--ignore-not-found")
    uid = space.get("gsvc", "chat")["metadata"]["uid"]
    until(lambda: [pod["metadata"]["ownerReferences"][0]["uid"] for pod in space.kubelet.pods()] == [uid], "a new pod")
    space.serve(1)


def fail(sidecar: Sidecar, result: TransitionResult | None, message: str) -> None:
    """The sidecar reports that it has failed, in a transition or at the start of its engine."""
    now = time.time()
    transition = None if result is None else TransitionStatus(
        id="t", kind=TransitionKind.LAYOUT, from_="TP", to="DP", phase=PodPhase.FAILED, result=result,
        started_at=now - 1, finished_at=now,
    )  # fmt: skip
    changes = {"phase": PodPhase.FAILED, "admitting": False, "message": message, "transition": transition}
    sidecar.state = sidecar.state.model_copy(update=changes)


def test_a_pod_that_a_transition_left_without_a_state_is_replaced(space: Space) -> None:
    space.apply(**TWO)
    sidecars = space.serve(2)
    old = space.uids()
    fail(sidecars["chat-1"], TransitionResult.FAILED, "neither DP nor TP answers")
    until(lambda: len(old & space.uids()) == 1, "the pod to go", 120)
    space.serve(2)


def test_an_engine_that_refuses_to_start_is_told_and_a_corrected_spec_heals_it(space: Space) -> None:
    space.apply(engine={"kind": "Simulated", "args": ["--profile=none"]})
    (sidecar,) = space.kubelet.run_all(1).values()
    fail(sidecar, None, "--profile: none is not known")
    until(lambda: space.condition("Stalled").get("reason") == "StartRefused", "the refusal to be told")
    assert "--profile: none is not known" in space.condition("Stalled")["message"]
    space.kubelet.report("chat-0", sidecar.address, "Running", ready=False)
    refused = space.uids()
    space.apply()
    until(lambda: space.uids() != refused, "the pod to go")
    space.serve(1)
    assert not refused & space.uids()
    assert space.condition("Stalled")["status"] == "False"


def test_a_flood_of_edits_ends_where_the_last_one_says(space: Space) -> None:
    space.apply(**TWO)
    space.serve(2)
    before = space.uids()

    def edit(seconds: int) -> None:
        patch = json.dumps({"spec": {"policy": {"window": f"{seconds}s"}}})
        space.cluster.kubectl("patch", "gsvc", "chat", "-n", space.name, "--type=merge", "-p", patch)

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(edit, range(10, 90)))
    edit(99)
    until(lambda: space.is_true("Ready"), "the last edit to be seen")
    assert space.uids() == before


def test_a_spec_that_never_starts_is_left_behind_by_the_one_before_it(space: Space) -> None:
    space.apply(**TWO)
    space.serve(2)
    space.apply(**TWO, engine={"kind": "Simulated", "image": "nowhere.example/none:1"})
    until(lambda: space.condition("Reconciling").get("reason") == "RollingOut", "the rollout to begin")
    until(lambda: "nowhere" in json.dumps(space.kubelet.pods()) and len(space.kubelet.pods()) == 2, "a pod of it")
    assert space.condition("Ready")["status"] == "True"
    space.apply(**TWO)
    until(lambda: "nowhere" not in json.dumps(space.kubelet.pods()), "its pods to go")
    space.serve(2)
    until(lambda: space.condition("Reconciling").get("status") == "False", "the service to be quiet")
