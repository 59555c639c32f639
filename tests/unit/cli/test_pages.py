# SPDX-License-Identifier: Apache-2.0
"""What `kubectl gearshift` prints of a service: whole pages, so that a change of look is a change of a test."""

import argparse

import pytest

from gearshift.api import reasons
from gearshift.cli import explainpage, historypage, kubectl, statuspage
from gearshift.cli.errors import RefusedError
from tests.unit.cli.bodies import NOW, record, service

STATUS = """\
Name:        models/chat
Model:       hf://org/llama
Ready:       True (Serving): all well
Pods:        2 of 2 serve
Layout:      DP=1,TP=1
P/D:         1/1
Actuation:   Approve
Hold:        none
Override:    none
Transition:  none
Decision:    Hold, AwaitingApproval: Queueing: 9 requests wait per pod
Plan:        bbbbbbbbbbbb, for 30s
Start-up:    95s from creation to serving (median of 2 pods)
URL:         http://chat-router.models.svc

CONDITION          STATUS   REASON             AGE   MESSAGE
Ready              True     Serving            60m   all well
LayoutConverged    False    AwaitingApproval   30s   plan bbbbbbbbbbbb: chat-0 to DP
MetricsAvailable   False    MetricsMissing     60s   unknown: itl_p90_seconds, waiting of Decode

LOAD      DEMAND       CAPACITY
prefill   4100 tok/s   unknown
decode    390 tok/s    1200 tok/s
(capacity: model; written 20s ago; 35 % of the prompt tokens were cached)

ROLE      DESIRED   READY
Prefill   1         1
Decode    1         1

POD      ROLE      LAYOUT   EPOCH   PHASE     READY
chat-0   Prefill   TP       0       Serving   yes
chat-1   Decode    DP       3       Serving   yes
"""
LIST = """\
NAMESPACE   NAME   READY   LAYOUT      P/D   PODS   ACTUATION   HUMAN                   DECISION           AGE
models      chat   True    DP=1,TP=1   1/1   2/2    Approve     hold, layout DP (30m)   AwaitingApproval   3h
models      new    True    DP=1,TP=1   1/1   2/2    Approve     -                       AwaitingApproval   3h
"""
EXPLAIN = """\
Decision:   Hold, for 30s
Plan:       bbbbbbbbbbbb
Held by:    AwaitingApproval: Queueing: 9 requests wait per pod
Proposed:   layout of chat-0 to DP
To do:      kubectl gearshift approve chat bbbbbbbbbbbb
Actuation:  Approve

INPUT           VALUE
kvUsage         0.3
waitingPerPod   9

Unknown metrics:
  itl_p90_seconds
  waiting of Decode
"""
HISTORY = """\
STARTED                AGE   POD      KIND     FROM   TO   RESULT       TOOK    PROOF OR REASON
2026-12-01T11:59:57Z   3s    chat-0   Layout   TP     DP   Running      -       Draining
2026-12-01T11:55:00Z   5m    chat-1   Layout   TP     DP   Committed    2.1s    epoch 3, 8 ranks, 1 probe token, 2 routers
2026-12-01T11:50:00Z   10m   chat-0   Layout   TP     DP   RolledBack   250ms   VerificationFailed: 7 of 8 ranks
"""  # noqa: E501
HOLD = {"annotations": {"gearshift.dev/hold": "true"}}
ORDER = {"override": {"layout": "DP", "until": "2026-12-01T12:30:00Z"}}
BRIDGE = {
    "pod": "chat-1", "uid": "u1", "from": "Decode", "to": "Prefill", "awaits": "chat-2", "awaitsUID": "u2",
    "phase": "Going",
}  # fmt: skip
RUNNING = record(id="c-chat-0", pod="chat-0", startedAt="2026-12-01T11:59:57Z", phase="Draining", result="Running")
FINAL = record(result="Failed", reason="EngineLost", message="rank 3", retryable=False)
BACK = record(
    id="d-chat-0", pod="chat-0", startedAt="2026-12-01T11:50:00Z", result="RolledBack", durationMilliseconds=250,
    reason="VerificationFailed", message="7 of 8 ranks",
)  # fmt: skip


def test_status_of_one_service() -> None:
    assert statuspage.one(service(), NOW) == STATUS


def test_status_of_many_services() -> None:
    found = [service(metadata=HOLD, spec=ORDER), service(metadata={"name": "new"})]
    assert statuspage.many(found, NOW, namespaces=True) == LIST


def test_explain() -> None:
    assert explainpage.page(service(), NOW) == EXPLAIN


def test_history_tells_what_no_other_try_would_mend() -> None:
    assert historypage.page(service(status={"transitionHistory": [FINAL]}), NOW).endswith(
        "EngineLost: rank 3, for good\n"
    )


def test_history() -> None:
    running = {
        key: value for key, value in RUNNING.items() if key not in ("finishedAt", "durationMilliseconds", "proof")
    }
    found = service(status={"transition": running, "transitionHistory": [record(), BACK]})
    assert historypage.page(found, NOW) == HISTORY


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"spec": ORDER}, "Override:    layout DP until 2026-12-01T12:30:00Z (30m left)"),
        (
            {"spec": {"override": {"role": "Decode", "until": "2026-12-01T11:59:00Z"}}},
            "Override:    role Decode until 2026-12-01T11:59:00Z (expired 60s ago)",
        ),
        ({"metadata": HOLD}, "Hold:        yes"),
        (
            {"metadata": {"annotations": {"gearshift.dev/approve": "bbbbbbbbbbbb@2026-12-01T12:14:00Z"}}},
            "Approved:    plan bbbbbbbbbbbb until 2026-12-01T12:14:00Z (14m left)",
        ),
        ({"metadata": {"annotations": {"gearshift.dev/hold": "no GPUs"}}}, "Hold:        yes: no GPUs"),
        (
            {"metadata": {"annotations": {"gearshift.dev/approve": "-"}}},
            "Note:        annotation gearshift.dev/approve: '-' is not PLAN or PLAN@TIME: '-' is not the id of a plan",
        ),
        ({"metadata": {"annotations": {"gearshift.dev/hold": "False"}}}, "Hold:        none"),
        ({"metadata": {"annotations": {"gearshift.dev/hold": "false"}}}, "Hold:        none"),
        (
            {"status": {"transition": RUNNING}},
            "Transition:  Layout of chat-0: TP -> DP, Draining, began 3s ago",
        ),
        (
            {"status": {"bridges": [BRIDGE]}},
            "Bridge:      chat-1 as Prefill in the place of chat-2, which starts: Going",
        ),
        (
            {
                "metadata": {"annotations": {"gearshift.dev/approve": "bbbbbbbbbbbb"}},
                "status": {"approval": {"plan": "bbbbbbbbbbbb", "until": "2026-12-01T11:59:00Z"}},
            },
            "Approved:    plan bbbbbbbbbbbb until 2026-12-01T11:59:00Z (expired 60s ago)",
        ),
        ({"metadata": {"generation": 3}}, "Note:        the operator has seen generation 2, the spec is at 3"),
        (
            {"status": {"pods": [], "podSummary": {"total": 70, "byPhase": {"Serving": 70}, "byLayout": {"TP": 70}}}},
            "70 pods: 70 Serving; layouts: 70 TP",
        ),
    ],
)
def test_status_tells_what_is_special(changes: dict[str, dict[str, object]], line: str) -> None:
    assert line in statuspage.one(service(**changes), NOW).splitlines()


def test_a_service_that_no_operator_has_seen_can_be_shown() -> None:
    bare = service()
    bare.body.pop("status")
    fresh = type(bare).read(bare.body)
    assert "Note:        the operator has not reported on it yet" in statuspage.one(fresh, NOW).splitlines()
    assert explainpage.page(fresh, NOW) == "inferenceservice models/chat: nothing has been decided yet\n"
    assert historypage.page(fresh, NOW) == "inferenceservice models/chat has had no transition\n"
    assert explainpage.facts(fresh)["decision"] is None


def test_a_status_that_this_version_does_not_know_names_field_and_value() -> None:
    with pytest.raises(RefusedError, match=r"inferenceservice models/chat: status\.roles\.0\.name: .*'Encode'"):
        service(status={"roles": [{"name": "Encode"}]})


@pytest.mark.parametrize(
    ("action", "reason", "held"),
    [
        ("Hold", reasons.COOLDOWN, reasons.COOLDOWN),
        ("Hold", reasons.STEADY, None),
        ("Hold", reasons.OVERRIDE, None),
        ("Layout of chat-0 to DP", reasons.QUEUEING, None),
    ],
)
def test_explain_tells_acting_from_holding(action: str, reason: str, held: str | None) -> None:
    decision = {"plan": "p", "action": action, "reason": reason, "at": "2026-12-01T11:59:30Z"}
    found = service(status={"lastDecision": decision})
    assert explainpage.facts(found)["heldBy"] == held
    assert ("Held by:" in explainpage.page(found, NOW)) == (held is not None)


def test_a_query_has_a_line_of_its_own() -> None:
    message = "waiting is unknown: no series; query sum(x)"
    decision = {
        "plan": "p",
        "action": "Hold",
        "reason": "MetricsMissing",
        "message": message,
        "at": "2026-12-01T12:00:00Z",
    }
    found = service(status={"lastDecision": decision})
    lines = [" ".join(line.split()) for line in explainpage.page(found, NOW).splitlines()]
    assert "Held by: MetricsMissing: waiting is unknown: no series" in lines
    assert "Query: sum(x)" in lines
    assert "sum(x)" not in statuspage.one(found, NOW)


def test_facts_for_machines_have_the_names_of_the_api() -> None:
    found = statuspage.facts(service(spec=ORDER), NOW)
    assert found["override"] == {"layout": "DP", "until": "2026-12-01T12:30:00Z", "active": True}
    assert found["lastDecision"]["plan"] == "bbbbbbbbbbbb"
    assert found["pods"][1]["epoch"] == 3
    history = historypage.facts(service())["transitionHistory"]
    assert history[0]["proof"] == {"epoch": 3, "ranks": 8, "probeTokens": 1, "routers": 2}


@pytest.mark.parametrize("reason", sorted({reasons.AWAITING_APPROVAL, reasons.APPROVAL_EXPIRED, reasons.HUMAN_HOLD}))
def test_what_only_a_human_can_end_names_the_command_that_does(reason: str) -> None:
    decision = {"plan": "bbbbbbbbbbbb", "action": "Hold", "reason": reason, "at": "2026-12-01T11:59:30Z"}
    words = explainpage.facts(service(status={"lastDecision": decision}))["todo"].split()
    assert words[:2] == ["kubectl", "gearshift"]
    parser = argparse.ArgumentParser()
    kubectl.add_to(parser.add_subparsers())
    assert parser.parse_args(words[2:]).name == "chat"
