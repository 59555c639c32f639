# SPDX-License-Identifier: Apache-2.0
"""Which orders are accepted, and the refusal of each kind of wrong one."""

from collections.abc import Callable
from typing import Any

import pytest

from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.api.wire import TransitionRequest
from gearshift.sidecar.ledger import Detail, Record, advance
from gearshift.sidecar.machine import Event
from gearshift.sidecar.orders import Accepted, Capability, Refused, Repeated, judge, roles_of

MakeRecord = Callable[..., Record]
MakeOrder = Callable[..., TransitionRequest]
CAPABLE = Capability(
    layouts=frozenset({Layout.TP, Layout.DP}), roles=frozenset({Role.UNIFIED}), undrained=frozenset({Layout.TP})
)


def test_a_right_order_is_accepted(make_record: MakeRecord, make_order: MakeOrder) -> None:
    assert judge(make_record(), make_order(), CAPABLE) == Accepted()


@pytest.mark.parametrize(
    ("record", "order", "code", "reason", "words"),
    [
        ({"fencing_token": 8}, {}, 409, "StaleFencingToken", "fencingToken 7 is older than 8"),
        ({}, {"expected_epoch": 3}, 409, "StaleEpoch", "expectedEpoch 3 is not the epoch 4"),
        ({}, {"expected_epoch": 5}, 409, "StaleEpoch", "expectedEpoch 5 is not the epoch 4"),
        ({"phase": PodPhase.STARTING}, {}, 409, "NotServing", "the pod is Starting"),
        ({"phase": PodPhase.FAILED, "message": "dead"}, {}, 409, "NotServing", "the pod is Failed: dead"),
        ({}, {"to": "SP"}, 422, "NotCapable", "layout 'SP', only DP, TP"),
        ({}, {"to": "sideways"}, 422, "NotCapable", "layout 'sideways', only DP, TP"),
        ({}, {"kind": "Role", "to": "Prefill"}, 422, "NotCapable", "role 'Prefill', only Unified"),
        ({}, {"to": "TP"}, 422, "NoChange", "layout is TP already"),
        ({}, {"kind": "Role", "to": "Unified"}, 422, "NoChange", "role is Unified already"),
        ({}, {"drain": "None"}, 422, "NotCapable", "TP to DP changes the engine: drain must be Wait"),
    ],
)
def test_a_wrong_order_is_refused_by_name(
    make_record: MakeRecord,
    make_order: MakeOrder,
    record: dict[str, Any],
    order: dict[str, Any],
    code: int,
    reason: str,
    words: str,
) -> None:
    judgement = judge(make_record(**record), make_order(**order), CAPABLE)
    assert isinstance(judgement, Refused)
    assert (judgement.code, judgement.error.reason) == (code, reason)
    assert words in judgement.error.message
    if code == 409:
        assert judgement.error.epoch == 4


SHIFTING = Capability(
    layouts=frozenset({Layout.TP, Layout.SHIFT}),
    roles=frozenset({Role.UNIFIED}),
    undrained=frozenset({Layout.TP, Layout.SHIFT}),
    shift_threshold_tokens=96,
    shift_floor_tokens=32,
)


def test_another_threshold_is_a_change_within_the_layout(make_record: MakeRecord, make_order: MakeOrder) -> None:
    order = make_order(to="Shift", shift_threshold_tokens=64, drain="None")
    assert judge(make_record(layout=Layout.SHIFT), order, SHIFTING) == Accepted()


@pytest.mark.parametrize(
    ("layout", "order", "reason", "words"),
    [
        ("Shift", {"shift_threshold_tokens": 96}, "NoChange", "layout is Shift already"),
        ("Shift", {}, "NoChange", "layout is Shift already"),
        ("TP", {"shift_threshold_tokens": 31}, "NotCapable", "shiftThresholdTokens 31 is below 32, the largest graph"),
        (
            "Shift",
            {"to": "TP", "shift_threshold_tokens": 64},
            "NotCapable",
            "only layout Shift has a threshold, not TP",
        ),
        (
            "Shift",
            {"kind": "Role", "to": "Unified", "shift_threshold_tokens": 64},
            "NotCapable",
            "only layout Shift has a threshold, not Unified",
        ),
    ],
)
def test_a_wrong_threshold_is_refused(
    make_record: MakeRecord, make_order: MakeOrder, layout: str, order: dict[str, Any], reason: str, words: str
) -> None:
    judgement = judge(make_record(layout=layout), make_order(**{"to": "Shift", **order}), SHIFTING)
    assert isinstance(judgement, Refused)
    assert (judgement.code, judgement.error.reason) == (422, reason)
    assert words in judgement.error.message


def test_an_id_is_bound_to_its_threshold(make_record: MakeRecord, make_order: MakeOrder) -> None:
    order = make_order(to="Shift", shift_threshold_tokens=64)
    busy, _ = advance(make_record(layout=Layout.SHIFT), Event.ORDERED, 11.0, Detail(order=order))
    assert isinstance(judge(busy, order, SHIFTING), Repeated)
    other = judge(busy, make_order(to="Shift", shift_threshold_tokens=65), SHIFTING)
    assert isinstance(other, Refused)
    assert other.error.reason == "IdReused"


def test_one_transition_at_a_time_and_the_same_one_twice(make_record: MakeRecord, make_order: MakeOrder) -> None:
    busy, _ = advance(make_record(), Event.ORDERED, 11.0, Detail(order=make_order()))
    other = judge(busy, make_order(id="t2"), CAPABLE)
    assert isinstance(other, Refused)
    assert other.error.reason == "TransitionInFlight"
    again = judge(busy, make_order(), CAPABLE)
    assert isinstance(again, Repeated)
    assert again.status.id == "t1"
    older = judge(busy, make_order(fencing_token=0, expected_epoch=0), CAPABLE)
    assert isinstance(older, Repeated)
    changed = judge(busy, make_order(to="TP"), CAPABLE)
    assert isinstance(changed, Refused)
    assert changed.error.reason == "IdReused"


def test_roles_are_split_only_where_engines_have_a_connector(make_config: Callable[..., PodConfig]) -> None:
    assert roles_of(make_config(disaggregated=True)) == frozenset(Role)
    assert roles_of(make_config(disaggregated=False)) == frozenset({Role.UNIFIED})
