# SPDX-License-Identifier: Apache-2.0
"""What keeps the operator from acting: budgets, holds, approvals that are over, and owners outside."""

from collections.abc import Iterator

import pytest

from gscluster.fast import FastCluster
from tests.functional.operator.world import Operator, Space, operator, until

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("leader")]

ROOM = [{"name": "Unified", "replicas": 1, "max": 4}]


@pytest.fixture(scope="module")
def leader(cluster: FastCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """An operator that lets a namespace hold 16 accelerators: two pods of 8."""
    with operator(cluster, tmp_path_factory.mktemp("operator"), namespace_accelerators="*=16") as one:
        yield one


def pods(space: Space, name: str) -> int:
    """Pods of a service."""
    return sum(1 for pod in space.kubelet.pods() if pod["metadata"]["name"].startswith(f"{name}-"))


def decision(space: Space, name: str = "chat") -> str:
    """Reason of the last decision."""
    found: str = space.status(name).get("lastDecision", {}).get("reason", "")
    return found


def annotate(space: Space, *pairs: str) -> None:
    """Set annotations of the service."""
    space.cluster.kubectl("annotate", "--overwrite", "gsvc", "chat", "-n", space.name, *pairs)


def test_a_service_stays_within_its_budget(space: Space) -> None:
    space.apply(replicas=2, policy={"maxAccelerators": 8})
    space.kubelet.run_all(1)
    until(lambda: decision(space) == "BudgetExhausted", "the budget to be told")
    told = space.condition("Reconciling")
    assert (told["status"], told["reason"]) == ("True", "BudgetExhausted")
    assert "policy.maxAccelerators is 8" in told["message"]
    assert pods(space, "chat") == 1


def test_the_services_of_a_namespace_share_its_budget(space: Space) -> None:
    for name in ("one", "two"):
        space.apply(name, replicas=2)
    until(lambda: "BudgetExhausted" in (decision(space, "one"), decision(space, "two")), "the budget to be told")
    until(lambda: pods(space, "one") + pods(space, "two") == 2, "two pods")
    space.cluster.kubectl("delete", "gsvc", "one", "-n", space.name)
    for pod in space.kubelet.pods():
        if pod["metadata"]["name"].startswith("one-"):  # no garbage collector runs here
            space.cluster.kubectl(
                "delete", "pod", pod["metadata"]["name"], "-n", space.name, "--force", "--grace-period=0"
            )
    until(lambda: pods(space, "two") == 2, "the other service to get its second pod")


def test_a_hold_is_told_by_a_condition_with_its_note(space: Space) -> None:
    space.apply()
    until(lambda: space.condition("Held").get("reason") == "NotHeld", "the first status")
    annotate(space, "gearshift.dev/hold=incident 7")
    until(lambda: space.is_true("Held"), "the hold to be told")
    assert space.condition("Held")["message"].endswith(": incident 7")
    annotate(space, "gearshift.dev/hold-")
    until(lambda: space.condition("Held")["status"] == "False", "the release to be told")


def test_an_approval_that_cant_be_read_is_told_by_an_event(space: Space) -> None:
    space.apply(policy={"actuation": "Approve"})
    annotate(space, "gearshift.dev/approve=go ahead")

    def told() -> bool:
        events = space.items("events.v1.events.k8s.io")
        return any(event["reason"] == "AnnotationUnreadable" and "'go ahead'" in event["note"] for event in events)

    until(told, "the event")


def test_an_approval_is_told_with_its_end(space: Space) -> None:
    space.apply(policy={"actuation": "Approve"})
    annotate(space, "gearshift.dev/approve=0123456789ab@2031-01-01T00:00:00Z")
    until(lambda: space.status().get("approval"), "the approval to be told")
    assert space.status()["approval"] == {"plan": "0123456789ab", "until": "2031-01-01T00:00:00Z"}


def test_an_owner_outside_is_told_once_it_has_spoken(space: Space) -> None:
    """``kubectl scale`` stands for HPA and KEDA: all of them write the scale subresource."""
    space.apply(roles=ROOM)
    until(lambda: space.is_true("ScalingActive"), "the policy to say that it scales")
    space.cluster.kubectl("scale", "gsvc", "chat", "--replicas=2", "-n", space.name)
    until(lambda: space.condition("ScalingActive")["reason"] == "ExternallyManaged", "the owner to be told")
    until(lambda: pods(space, "chat") == 2, "its number of pods")


def test_a_service_that_the_policy_scales_refuses_another_owner(space: Space) -> None:
    space.apply(roles=ROOM, scaling={"owner": "Gearshift"})
    with pytest.raises(Exception, match=r"is for scaling\.owner External"):
        space.cluster.kubectl("scale", "gsvc", "chat", "--replicas=2", "-n", space.name)


def test_replicas_of_a_router_that_someone_else_scales_are_not_fought_over(space: Space) -> None:
    """Scaled from outside they stay through a reconcile; given back they are the operator's again."""
    space.apply(router={"scaling": {"owner": "External"}})
    until(lambda: space.items("deployments"), "the router")
    space.cluster.kubectl("scale", "deployment", "chat-router", "--replicas=3", "-n", space.name)
    space.apply(router={"scaling": {"owner": "External"}}, policy={"dwell": "31s"})
    generation = space.get("gsvc", "chat")["metadata"]["generation"]
    until(lambda: space.status().get("observedGeneration") == generation, "the operator to look again")
    assert space.get("deployment", "chat-router")["spec"]["replicas"] == 3
    space.apply(router={"replicas": 2})
    until(lambda: space.get("deployment", "chat-router")["spec"]["replicas"] == 2, "the operator's own number")
