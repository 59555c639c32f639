# SPDX-License-Identifier: Apache-2.0
"""Layouts change live, ordered by a human and by the policy, each with its proof in status."""

import pytest

from gsstack.load import Load
from gsstack.services import Status
from gsstack.space import Space

pytestmark = pytest.mark.e2e

ARGS = ["--profile=llama-3-70b-fp8-h200", "--startup=1s"]
POLICY = {"window": "5s", "dwell": "1s", "cooldown": "0s"}
FOREVER = "2099-01-01T00:00:00Z"


@pytest.mark.usefixtures("metrics")
def test_an_order_and_then_the_policy_shift_a_pod(space: Space) -> None:
    service = space.serve("chat", args=ARGS, parallelism={"layouts": ["TP", "DP"]}, policy=POLICY)
    pods = service.uids()
    with Load(service.url(), requests_per_second=3) as load:
        service.patch({"override": {"layout": "DP", "until": FOREVER}})
        ordered = service.wait_for(lambda status: _layouts(status) == ["DP"], "layout DP, as ordered")
        load.wait_for_answers(8)
        service.patch({"override": None})
        shifted = service.wait_for(lambda status: _layouts(status) == ["TP"], "layout TP, as the load is light", 180)
        load.wait_for_answers(8)
    assert load.failures() == []
    assert {len(texts) for texts in load.digests().values()} == {1}
    assert service.uids() == pods
    assert _told(ordered["transitionHistory"]) == [("TP", "DP", "Committed", 1, 8)]
    assert _told(shifted["transitionHistory"]) == [("DP", "TP", "Committed", 2, 8), ("TP", "DP", "Committed", 1, 8)]
    assert all(record["proof"]["probeTokens"] > 0 for record in shifted["transitionHistory"])
    assert service.status()["layout"] == "TP"


def _layouts(status: Status) -> list[str]:
    """Layouts of the pods that serve, once no transition runs."""
    if status.get("transition") is not None:
        return []
    return sorted({pod["layout"] for pod in status.get("pods", []) if pod["phase"] == "Serving"})


def _told(history: list[Status]) -> list[tuple[str, str, str, int, int]]:
    """From, to, result, epoch and ranks of each record, newest first."""
    assert {record["kind"] for record in history} == {"Layout"}
    return [(one["from"], one["to"], one["result"], one["proof"]["epoch"], one["proof"]["ranks"]) for one in history]
