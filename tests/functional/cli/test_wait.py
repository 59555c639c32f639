# SPDX-License-Identifier: Apache-2.0
"""Orders that are followed while a real operator carries them out."""

import json

import pytest

from tests.functional.cli.conftest import Run, override
from tests.functional.operator.world import Space, until

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("leader")]

QUICK = {"window": "5s", "dwell": "1s", "cooldown": "1s"}
LAYOUTS = {"parallelism": {"layouts": ["TP", "DP"]}}
SPLIT = {"roles": [{"name": "Prefill", "replicas": 2, "min": 1}, {"name": "Decode", "replicas": 2, "min": 1}]}


def test_an_order_is_followed_until_every_pod_is_as_ordered(space: Space, run: Run) -> None:
    space.apply(**LAYOUTS, **SPLIT, policy=QUICK)
    space.serve(4)
    said = run("shift", "chat", "DP", "--wait", "--timeout", "180s")
    assert (said.code, said.err) == (0, "")
    committed = [line for line in said.out.splitlines() if ": TP -> DP: Committed in " in line]
    assert len(committed) == 4
    assert all(line.endswith("epoch 1, 8 ranks, 1 probe token, 1 router") for line in committed)
    assert [pod["layout"] for pod in space.status()["pods"]] == ["DP"] * 4
    said = run("flip", "chat", "Prefill", "--wait", "--timeout", "180s", "-o", "json")
    assert said.code == 0
    assert {role["name"]: role["ready"] for role in said.json["status"]["roles"]} == {"Prefill": 3, "Decode": 1}
    assert ": Decode -> Prefill: Committed in " in said.err
    shown = run("history", "chat", "-o", "json").json["transitionHistory"]
    assert [each["result"] for each in shown] == ["Committed"] * 5
    assert {each["proof"]["ranks"] for each in shown} == {8}
    assert "waiting of Prefill" in run("explain", "chat", "-o", "json").json["unknownMetrics"]


def test_a_transition_that_is_rolled_back_ends_the_wait_and_the_order_stands(space: Space, run: Run) -> None:
    space.apply(**LAYOUTS, policy=QUICK)
    (sidecar,) = space.serve(1).values()
    sidecar.fails = True
    said = run("shift", "chat", "DP", "--wait", "--timeout", "180s")
    assert said.code == 1
    assert "Layout of chat-0: TP -> DP: RolledBack: VerificationFailed" in said.err
    assert (override(space) or {})["layout"] == "DP"
    assert run("release", "chat").code == 0


def test_a_transition_that_hangs_is_told_when_time_is_up(space: Space, run: Run) -> None:
    space.apply(**LAYOUTS, policy=QUICK)
    (sidecar,) = space.serve(1).values()
    sidecar.hold.set()
    said = run("shift", "chat", "DP", "--wait", "--timeout", "8s")
    assert said.code == 1
    assert "Layout of chat-0: TP -> DP: Draining" in said.out
    assert "not done after 8s" in said.err
    assert "Layout of chat-0: TP -> DP is Draining" in said.err
    assert "Transition:  Layout of chat-0: TP -> DP, Draining, began " in run("status", "chat").out
    sidecar.hold.clear()
    until(lambda: space.status()["layout"] == "DP", "the transition to end")


def test_a_hold_while_an_order_is_carried_out_is_told(space: Space, run: Run) -> None:
    space.apply(**LAYOUTS, policy=QUICK)
    space.serve(1)
    assert run("hold", "chat", "--reason", "audit").code == 0
    patch = {"spec": {"override": {"layout": "DP", "until": "2036-12-01T18:00:00Z"}}}
    space.cluster.kubectl("patch", "gsvc", "chat", "-n", space.name, "--type=merge", "-p", json.dumps(patch))
    until(lambda: space.status()["lastDecision"]["reason"] == "HumanHold", "the hold to be told")
    assert run("explain", "chat", "-o", "json").json["todo"] == "kubectl gearshift release chat"
    said = run("release", "chat")
    assert said.code == 1
    assert "spec.override is set by kubectl-patch" in said.err
    assert run("release", "chat", "--force-conflicts").code == 0
    until(lambda: space.status()["lastDecision"]["reason"] != "HumanHold", "the hold to end")
