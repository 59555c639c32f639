# SPDX-License-Identifier: Apache-2.0
"""An approval holds for its plan until it expires, also over a restart of the operator."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gearshift.api import reasons
from gearshift.api.approval import APPROVAL_SECONDS
from gearshift.api.v1alpha1.status import ApprovalStatus, InferenceServiceStatus
from gearshift.policy.decide import decide
from gearshift.policy.memory import fold, rebuild
from gearshift.policy.plan import Approved, Memory, Plan
from gearshift.policy.snapshot import Snapshot
from tests.unit.policy.build import LONG_AGO, NOW, metrics, pod, seasoned, snapshot, spec

WANTED = seasoned("Layout:DP")
BUSY = metrics(waiting=100, running=50, kv_usage=0.2, ttft_p90=9)
STATE = snapshot([pod(0), pod(1)], spec(replicas=2, policy={"actuation": "Approve"}), metrics=BUSY)


def after(state: Snapshot, memory: Memory) -> tuple[Plan, Memory]:
    """One tick."""
    folded = fold(memory, state)
    return decide(state, folded), folded


PLAN = after(STATE, WANTED)[0].id


@pytest.mark.parametrize(
    ("until", "seconds_later", "reason"),
    [
        (None, 0, reasons.QUEUEING),
        (None, APPROVAL_SECONDS - 1, reasons.QUEUEING),
        (None, APPROVAL_SECONDS, reasons.APPROVAL_EXPIRED),
        (60.0, 59, reasons.QUEUEING),
        (60.0, 60, reasons.APPROVAL_EXPIRED),
        (-1.0, 0, reasons.APPROVAL_EXPIRED),
    ],
)
def test_an_approval_expires(until: float | None, seconds_later: float, reason: str) -> None:
    """Seen first while something else stood in the way, then met ``seconds_later``."""
    approved = replace(STATE, approved=PLAN, approved_until=None if until is None else NOW + until)
    memory = fold(WANTED, approved)
    later = replace(approved, at=NOW + seconds_later)
    plan, _ = after(later, memory)
    assert (plan.id, plan.reason, bool(plan.actions)) == (PLAN, reason, reason == reasons.QUEUEING)


def test_another_plan_is_not_approved() -> None:
    plan, memory = after(replace(STATE, approved="other"), WANTED)
    assert plan.reason == reasons.AWAITING_APPROVAL
    assert memory.approved == Approved("other", NOW, NOW + APPROVAL_SECONDS)


def test_the_message_of_an_expired_approval_says_since_when() -> None:
    memory = fold(WANTED, replace(STATE, approved=PLAN))
    plan, _ = after(replace(STATE, approved=PLAN, at=NOW + APPROVAL_SECONDS + 5), memory)
    assert plan.message.endswith(f"; the approval of plan {PLAN} expired 5 s ago")
    assert plan.proposal


def test_a_withdrawn_approval_is_forgotten_and_a_new_one_counts_anew() -> None:
    memory = fold(WANTED, replace(STATE, approved=PLAN))
    memory = fold(memory, replace(STATE, at=NOW + 10))
    assert memory.approved is None
    again = replace(STATE, approved=PLAN, at=NOW + APPROVAL_SECONDS + 10)
    assert after(again, memory)[0].actions


def test_a_longer_time_prolongs_an_approval() -> None:
    memory = fold(WANTED, replace(STATE, approved=PLAN, approved_until=NOW + 10))
    later = replace(STATE, approved=PLAN, approved_until=NOW + 100, at=NOW + 50)
    assert after(later, memory)[0].actions


def test_a_restart_does_not_prolong_an_approval() -> None:
    """What status says of it is taken over; the evidence is long again by then."""
    told = ApprovalStatus(plan=PLAN, until=datetime.fromtimestamp(NOW - 1, UTC))
    memory = replace(rebuild(LONG_AGO, InferenceServiceStatus(approval=told)), evidence_since={"Layout:DP": LONG_AGO})
    assert after(replace(STATE, approved=PLAN), memory)[0].reason == reasons.APPROVAL_EXPIRED
