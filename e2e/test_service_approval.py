# SPDX-License-Identifier: Apache-2.0
"""What a human has to say about a decision: Advisory only reports it, Approve waits for the plan's id."""

import pytest

from gearshift.api import names
from gsstack.load import Load
from gsstack.services import Service
from gsstack.space import Space

pytestmark = pytest.mark.e2e

ARGS = ["--profile=llama-3-70b-fp8-h200", "--startup=1s"]
POLICY = {"window": "5s", "dwell": "1s", "cooldown": "0s"}
PARALLELISM = {"layouts": ["TP", "DP"], "initial": "DP"}  # the load is light, so the policy wants TP


@pytest.mark.usefixtures("metrics")
def test_a_decision_waits_for_its_approval(space: Space) -> None:
    policy = POLICY | {"actuation": "Advisory"}
    service = space.serve("chat", args=ARGS, parallelism=PARALLELISM, policy=policy)
    with Load(service.url(), requests_per_second=2) as load:
        plan = _decided(service, "Advisory")
        service.patch({"policy": {"actuation": "Approve"}})
        assert _decided(service, "AwaitingApproval") == plan
        assert service.condition("LayoutConverged")["reason"] == "AwaitingApproval"
        _check_another_id_is_no_approval(service)
        service.annotate(f"{names.ANNOTATION_APPROVE}={plan}")
        status = service.wait_for(lambda status: status["layout"] == "TP" and "transition" not in status, "layout TP")
    assert load.failures() == []
    (told,) = status["transitionHistory"]
    assert (told["id"], told["to"], told["result"]) == (f"{plan}-chat-0", "TP", "Committed")


def _decided(service: Service, reason: str) -> str:
    """Wait for a decision that is held for a reason; its plan's id."""
    words = f"a decision held as {reason}"
    status = service.wait_for(lambda status: status.get("lastDecision", {}).get("reason") == reason, words, 180)
    assert status["lastDecision"]["action"] == "Hold"
    assert status["layout"] == "DP"
    assert status.get("transitionHistory", []) == []
    return str(status["lastDecision"]["plan"])


def _check_another_id_is_no_approval(service: Service) -> None:
    """The operator has seen the annotation when it has seen a later change of the spec."""
    service.annotate(f"{names.ANNOTATION_APPROVE}=0123456789ab")
    service.patch({"policy": {"window": "6s"}})
    generation = service.get()["metadata"]["generation"]
    service.wait_for(lambda status: status["observedGeneration"] == generation, "the operator to see it")
    _decided(service, "AwaitingApproval")
