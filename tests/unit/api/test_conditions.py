# SPDX-License-Identifier: Apache-2.0
"""Merging of conditions."""

from datetime import UTC, datetime

from gearshift.api.conditions import READY, RECONCILING, SHIFTING, Condition, ConditionStatus, merge

OLD = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def condition(kind: str, status: ConditionStatus, at: datetime, reason: str = "Because") -> Condition:
    return Condition(type=kind, status=status, reason=reason, last_transition_time=at)


def test_time_changes_only_with_the_status() -> None:
    before = [condition(READY, "True", OLD), condition(SHIFTING, "False", OLD)]
    after = merge(before, [condition(READY, "True", NOW, "Other"), condition(SHIFTING, "True", NOW)], NOW)
    assert [(c.type, c.reason, c.last_transition_time) for c in after] == [
        (READY, "Other", OLD),
        (SHIFTING, "Because", NOW),
    ]


def test_unnamed_types_stay_and_the_order_is_fixed() -> None:
    before = [condition(SHIFTING, "False", OLD), condition("Custom", "True", OLD)]
    after = merge(before, [condition(RECONCILING, "False", NOW), condition(READY, "True", NOW)], NOW)
    assert [c.type for c in after] == [READY, RECONCILING, SHIFTING, "Custom"]
