# SPDX-License-Identifier: Apache-2.0
"""An operator that is killed in the middle of a transition and comes back: the pod goes on by itself, and the outcome
is told as if nothing had happened.
"""

import pytest

from gsstack.chain import Chain
from gsstack.load import Load
from gsstack.services import Service, Status
from gsstack.space import Space

pytestmark = pytest.mark.e2e

ROLES = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1, "min": 0}]
POLICY = {"dwell": "0s", "cooldown": "0s", "drainTimeout": "60s"}
SLOW = ["--profile=llama-3-70b-fp8-h200", "--startup=1s"]
FOREVER = "2099-01-01T00:00:00Z"


def test_the_outcome_is_told_by_the_next_operator(chain: Chain, space: Space) -> None:
    service = space.serve("chat", args=SLOW, roles=ROLES, policy=POLICY)
    pods = service.uids()
    with Load(service.url(), requests_per_second=2, output_tokens=400) as load:  # a drain lasts for seconds
        service.patch({"override": {"role": "Prefill", "until": FOREVER}})
        begun = service.wait_for(lambda status: status.get("transition") is not None, "the transition to begin")
        chain.kill_operator()
        ended = service.wait_for(lambda status: bool(status.get("transitionHistory")), "its outcome in status", 180)
    assert load.failures() == []
    _check_one_outcome(begun["transition"], ended)
    service.wait_settled()
    _check_consistent(service, begun["transition"]["pod"])
    assert service.uids() == pods


def _check_one_outcome(begun: Status, status: Status) -> None:
    """The transition that was under way has ended once, with proof."""
    (told,) = status["transitionHistory"]
    same = ("id", "pod", "kind", "from", "to", "startedAt")
    assert [told[field] for field in same] == [begun[field] for field in same]
    assert told["result"] == "Committed"
    assert told["proof"]["epoch"] == 1
    assert told["finishedAt"] >= begun["startedAt"]


def _check_consistent(service: Service, moved: str) -> None:
    status = service.status()
    assert status.get("transition") is None
    epochs = {pod["name"]: pod["epoch"] for pod in status["pods"]}
    assert epochs == {name: int(name == moved) for name in epochs}
    assert {pod["role"] for pod in status["pods"]} == {"Prefill"}
    assert len(status["transitionHistory"]) == 1
