# SPDX-License-Identifier: Apache-2.0
"""A changed threshold of layout Shift reaches the pods that differ, one at a time and without metrics."""

from typing import Any

import pytest

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, TransitionKind
from gearshift.policy.decide import decide
from gearshift.policy.explain import explain
from gearshift.policy.plan import Transit
from gearshift.policy.snapshot import Metrics, PodView
from tests.unit.policy.build import pod, seasoned, snapshot, spec, starting


def service(threshold: int | None, **fields: Any) -> InferenceServiceSpec:
    parallelism: dict[str, Any] = {"layouts": ["Shift", "TP"]}
    if threshold is not None:
        parallelism["shiftThresholdTokens"] = threshold
    return spec(parallelism=parallelism, replicas=2, **fields)


def shifting(ordinal: int, threshold: int | None, layout: Layout = Layout.SHIFT) -> PodView:
    layouts = (Layout.SHIFT, Layout.TP)
    return pod(ordinal, layout=layout, layouts=layouts, shift_threshold_tokens=threshold)


@pytest.mark.parametrize("actuation", ["Auto", "Approve", "Advisory"])
def test_a_pod_that_differs_is_told_at_once_whatever_the_load_and_the_actuation(actuation: str) -> None:
    wanted = service(64, policy={"actuation": actuation})
    look = snapshot([shifting(0, 64), shifting(1, 96)], wanted, metrics=Metrics())
    plan = decide(look, seasoned(last_transition_at=look.at))
    assert plan.actions == (Transit("chat-1", TransitionKind.LAYOUT, "Shift", 0, reasons.SHIFT_THRESHOLD, 64),)
    assert explain(plan) == (
        "Threshold of chat-1 to 64 tokens (ShiftThreshold): spec.parallelism.shiftThresholdTokens is 64"
    )


@pytest.mark.parametrize(
    ("threshold", "pods"),
    [
        (64, [shifting(0, 64), shifting(1, 64)]),
        (64, [shifting(0, None), shifting(1, 64)]),
        (64, [shifting(0, 96, Layout.TP), shifting(1, 64)]),
        (None, [shifting(0, 96), shifting(1, 64)]),
        (64, [starting(0, layout=Layout.SHIFT, shift_threshold_tokens=96), shifting(1, 64)]),
    ],
)
def test_otherwise_nobody_is_told(threshold: int | None, pods: list[PodView]) -> None:
    plan = decide(snapshot(pods, service(threshold), metrics=Metrics()), seasoned())
    assert plan.actions == ()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"hold": True}, reasons.HUMAN_HOLD), ({"revision": "newer"}, reasons.ROLLOUT)],
)
def test_hold_and_rollout_come_first(changes: dict[str, Any], reason: str) -> None:
    look = snapshot([shifting(0, 64), shifting(1, 96)], service(64), metrics=Metrics(), **changes)
    plan = decide(look, seasoned())
    assert not [action for action in plan.actions if isinstance(action, Transit)]
    assert plan.reason == reason


def test_two_thresholds_are_two_plans() -> None:
    pods = [shifting(0, 64), shifting(1, 96)]
    first, second = (decide(snapshot(pods, service(wanted)), seasoned()) for wanted in (63, 62))
    assert first.id != second.id
