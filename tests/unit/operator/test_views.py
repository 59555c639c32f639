# SPDX-License-Identifier: Apache-2.0
"""From what was gathered to what decisions see."""

from dataclasses import replace

import pytest

from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind, TransitionResult
from gearshift.api.wire import PodState, TransitionStatus
from gearshift.operator.records import NodeRecord, PodRecord
from gearshift.operator.views import node_lost, phase_of, pod_view, start_refused

RECORD = PodRecord(
    namespace="prod", name="chat-0", uid="pod-1", service_uid="uid-1", ordinal=0, revision="r", version=1,
    created_at=100.0, role=Role.UNIFIED, layout=Layout.TP, layouts=(Layout.TP, Layout.DP), node="n1",
    address="10.0.0.1", ready=True, ready_since=110.0,
)  # fmt: skip
STATE = PodState(
    pod="chat-0", uid="pod-1", sequence=1, epoch=4, phase=PodPhase.DRAINING, admitting=False, role=Role.DECODE,
    layout=Layout.DP, layouts=[Layout.TP, Layout.DP], engine_port=8000, model="llama", since=150.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "answer", "heard", "phase"),
    [
        ({"deleting": True}, STATE, True, PodPhase.TERMINATING),
        ({"ended": True}, None, True, PodPhase.FAILED),
        ({}, STATE, False, PodPhase.DRAINING),
        ({"ready": True}, None, False, PodPhase.UNKNOWN),
        ({"ready": False}, None, True, PodPhase.UNKNOWN),
        ({"ready": False}, None, False, PodPhase.STARTING),
    ],
)
def test_phase(changes: dict[str, bool], answer: PodState | None, heard: bool, phase: PodPhase) -> None:
    assert phase_of(replace(RECORD, **changes), answer, heard=heard) is phase  # type: ignore[arg-type]


def test_the_present_word_of_a_sidecar_wins_over_the_last_one_and_that_over_the_start() -> None:
    older = STATE.model_copy(update={"role": Role.PREFILL, "epoch": 3})
    now = pod_view(RECORD, STATE, older, lost=False)
    assert (now.role, now.epoch, now.since) == (Role.DECODE, 4, 150.0)
    silent = pod_view(RECORD, None, older, lost=False)
    assert (silent.role, silent.epoch, silent.phase) == (Role.PREFILL, 3, PodPhase.UNKNOWN)
    fresh = pod_view(RECORD, None, None, lost=False)
    assert (fresh.role, fresh.layout, fresh.epoch) == (Role.UNIFIED, Layout.TP, 0)


UNREADY = NodeRecord("n1", ready=False, since=150.0, out_of_service=False)
OTHER = NodeRecord("n2", ready=True, since=0.0, out_of_service=False)


@pytest.mark.parametrize(
    ("nodes", "absent", "lost"),
    [
        ([OTHER], {}, False),
        ([OTHER], {"n1": 170.0}, False),
        ([OTHER], {"n1": 150.0}, True),
        ([OTHER, replace(UNREADY, ready=True, since=0.0)], {}, False),
        ([OTHER, replace(UNREADY, ready=True, out_of_service=True)], {}, True),
        ([OTHER, replace(UNREADY, since=170.0)], {}, False),
        ([OTHER, UNREADY], {}, True),
        ([replace(OTHER, ready=False), UNREADY], {}, False),
        ([UNREADY], {}, False),
    ],
)
def test_node_lost(nodes: list[NodeRecord], absent: dict[str, float], lost: bool) -> None:
    known = {node.name: node for node in nodes}
    assert node_lost(RECORD, known, absent, 200.0, 40.0) is lost
    assert node_lost(replace(RECORD, node=""), known, absent, 200.0, 40.0) is False


@pytest.mark.parametrize(
    ("result", "failed"), [(None, False), (TransitionResult.ROLLED_BACK, False), (TransitionResult.FAILED, True)]
)
def test_a_pod_that_a_transition_left_without_a_state_is_replaced(
    result: TransitionResult | None, failed: bool
) -> None:
    ended = None if result is None else TransitionStatus(
        id="t", kind=TransitionKind.LAYOUT, from_="TP", to="DP", phase=PodPhase.FAILED, result=result, started_at=1.0
    )  # fmt: skip
    answer = STATE.model_copy(update={"phase": PodPhase.FAILED, "transition": ended})
    assert pod_view(RECORD, answer, None, lost=False).failed is failed
    assert start_refused(answer) is not failed
