# SPDX-License-Identifier: Apache-2.0
"""Transitions: ordered with epoch and fencing token, followed to their end, told in status and events."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.functional.operator.world import Operator, Space, until

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("leader")]

LAYOUTS = {"parallelism": {"layouts": ["TP", "DP"]}, "policy": {"window": "5s", "dwell": "1s", "cooldown": "1s"}}


def until_tomorrow() -> str:
    """An expiry in the form that Kubernetes takes."""
    return (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def ordered(layout: str) -> dict[str, Any]:
    """A spec by which a human orders a layout."""
    return {**LAYOUTS, "override": {"layout": layout, "until": until_tomorrow()}}


def history(space: Space) -> list[dict[str, Any]]:
    """Ended transitions."""
    found: list[dict[str, Any]] = space.status().get("transitionHistory", [])
    return found


def events(space: Space) -> list[str]:
    """Reasons of the service's events."""
    return [event["reason"] for event in space.items("events.v1.events.k8s.io")]


def test_an_ordered_layout_is_carried_out_with_proof(space: Space, leader: Operator) -> None:
    space.apply(**LAYOUTS)
    (sidecar,) = space.serve(1).values()
    sidecar.hold.set()
    space.apply(**ordered("DP"))
    until(lambda: space.is_true("Shifting"), "the transition to run", 120)
    assert space.status()["transition"]["to"] == "DP"
    assert space.condition("LayoutConverged")["status"] == "False"
    sidecar.hold.clear()
    (record,) = until(lambda: history(space), "the transition to end")
    assert (record["pod"], record["from"], record["to"], record["result"]) == ("chat-0", "TP", "DP", "Committed")
    assert record["proof"] == {"epoch": 1, "ranks": 8, "probeTokens": 1, "routers": 1}
    (order,) = sidecar.orders
    assert (order.id, order.expected_epoch, order.drain_timeout) == (record["id"], 0, "60s")
    assert f"leading with fencing token {order.fencing_token}\n" in leader.log
    assert record["id"].endswith("-chat-0")
    assert set(sidecar.tokens) == {"Bearer a control token"}
    until(lambda: space.status()["layout"] == "DP" and space.is_true("LayoutConverged"), "the layout to converge")
    until(lambda: {"TransitionStarted", "TransitionCommitted"} <= set(events(space)), "the events")
    labels = f'kind="Layout",namespace="{space.name}",result="Committed",service="chat",to="DP"'
    assert f'gearshift_operator_transitions_total{{from="TP",{labels}}} 1.0' in leader.metrics()


def test_a_transition_that_rolls_back_is_told_and_tried_again_under_another_id(space: Space) -> None:
    space.apply(**LAYOUTS)
    (sidecar,) = space.serve(1).values()
    sidecar.fails = True
    space.apply(**ordered("DP"))
    until(lambda: history(space), "the transition to end", 120)
    assert history(space)[-1]["result"] == "RolledBack"
    assert history(space)[-1]["reason"] == "VerificationFailed"
    sidecar.fails = False
    until(lambda: history(space)[0]["result"] == "Committed", "a later try to succeed", 120)
    assert len({order.id for order in sidecar.orders}) == len(sidecar.orders) >= 2
    assert "TransitionRolledBack" in events(space)


def test_a_pod_that_goes_away_during_its_transition_is_told_as_lost(space: Space) -> None:
    space.apply(**LAYOUTS)
    (sidecar,) = space.serve(1).values()
    sidecar.hold.set()
    space.apply(**ordered("DP"))
    until(lambda: space.is_true("Shifting"), "the transition to run", 120)
    space.cluster.kubectl("delete", "pod", "chat-0", "-n", space.name, "--wait=false")
    (record,) = until(lambda: history(space), "the transition to end")
    assert (record["result"], record["reason"]) == ("Failed", "PodLost")


def test_pods_take_the_layout_of_their_role(space: Space) -> None:
    """New ones start with it, running ones are brought to it one by one, and the condition tells when it is done."""
    roles = [{"name": "Prefill", "layout": "DP"}, {"name": "Decode"}]
    space.apply(**LAYOUTS, roles=roles)
    sidecars = space.serve(2).values()
    assert sorted((each.state.role, each.state.layout) for each in sidecars) == [("Decode", "TP"), ("Prefill", "DP")]
    space.apply(**LAYOUTS, roles=[{**roles[0], "layout": "TP"}, {**roles[1], "layout": "DP"}])
    until(lambda: len(history(space)) == 2, "two transitions", 120)
    assert sorted((each.state.role, each.state.layout) for each in sidecars) == [("Decode", "DP"), ("Prefill", "TP")]
    until(lambda: space.is_true("LayoutConverged"), "the layouts to be as the spec says")
