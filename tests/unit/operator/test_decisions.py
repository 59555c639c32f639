# SPDX-License-Identifier: Apache-2.0
"""A decision is told once."""

import logging
from datetime import UTC, datetime

import pytest

from gearshift.api.v1alpha1.status import Decision
from gearshift.api.vocabulary import Layout, Role
from gearshift.operator.decisions import Decisions
from gearshift.operator.metrics import Metrics
from gearshift.policy.plan import CreatePod, Hold, Plan
from gearshift.policy.snapshot import Snapshot
from tests.unit.operator.builders import spec

STATE = Snapshot(0.0, "prod", "chat", "uid-1", 1, spec(replicas=3), "r")
HOLD = Plan("p1", hold=Hold("Steady", "nothing is to be done"), reason="Steady", message="nothing is to be done")
ACT = Plan("p2", (CreatePod(0, Role.UNIFIED, Layout.TP, "PodMissing"),), reason="PodMissing", message="0 live", pods=4)


def counted(metrics: Metrics, action: str, reason: str) -> float:
    """Increments of the counter."""
    labels = {"namespace": "prod", "service": "chat", "action": action, "reason": reason}
    return metrics.registry.get_sample_value("gearshift_operator_decisions_total", labels) or 0.0


def desired(metrics: Metrics) -> float | None:
    """The gauge of desired pods."""
    return metrics.registry.get_sample_value(
        "gearshift_operator_pods_desired", {"namespace": "prod", "service": "chat"}
    )


def test_a_change_is_one_line_and_one_increment(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    metrics = Metrics()
    decisions = Decisions(metrics)
    for plan in (HOLD, HOLD, ACT, ACT, HOLD):
        decisions.tell(STATE, plan, None)
    assert [record.getMessage() for record in caplog.records] == [
        "prod/chat: plan p1: Hold (Steady) nothing is to be done",
        "prod/chat: plan p2: create 0 as Unified TP (PodMissing) 0 live",
        "prod/chat: plan p1: Hold (Steady) nothing is to be done",
    ]
    assert (counted(metrics, "Hold", "Steady"), counted(metrics, "CreatePod", "PodMissing")) == (2.0, 1.0)


def test_a_restart_repeats_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    earlier = Decision(plan="p1", action="Hold", reason="Steady", at=datetime.fromtimestamp(0, UTC))
    metrics = Metrics()
    Decisions(metrics).tell(STATE, HOLD, earlier)
    assert (caplog.records, counted(metrics, "Hold", "Steady")) == ([], 0.0)


def test_desired_pods_are_the_plans_where_scaling_decides_and_else_the_specs() -> None:
    metrics = Metrics()
    Decisions(metrics).tell(STATE, HOLD, None)
    assert desired(metrics) == 3
    Decisions(metrics).tell(STATE, ACT, None)
    assert desired(metrics) == 4
