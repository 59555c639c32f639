# SPDX-License-Identifier: Apache-2.0
"""A human's approval holds for one plan and for a limited time, also over a restart of the operator."""

from dataclasses import replace

from gearshift.api import reasons
from gearshift.api.approval import APPROVAL_SECONDS
from gearshift.policy.plan import Approved, Hold, Memory
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.verdict import number


def remember_approval(snapshot: Snapshot, memory: Memory) -> Approved | None:
    """The approval after this snapshot.

    | annotation | remembered | result |
    |---|---|---|
    | absent | any | none |
    | plan P, or P@T | none, or of another plan or time | P from now until T, or for `APPROVAL_SECONDS` |
    | plan P, or P@T | of P, and of T if there is one | as remembered |
    """
    if snapshot.approved is None:
        return None
    until = snapshot.approved_until
    known = memory.approved
    if known is not None and known.plan == snapshot.approved and until in (None, known.until):
        return known
    return Approved(snapshot.approved, snapshot.at, snapshot.at + APPROVAL_SECONDS if until is None else until)


def in_force(snapshot: Snapshot, memory: Memory) -> Snapshot:
    """The snapshot without an approval that has expired."""
    return replace(snapshot, approved=None) if expired(snapshot, memory) else snapshot


def expired(snapshot: Snapshot, memory: Memory) -> bool:
    """There is an approval, and its time is over."""
    approval = remember_approval(snapshot, memory)
    return approval is not None and snapshot.at >= approval.until


def waiting(snapshot: Snapshot, memory: Memory, plan: str, why: str) -> Hold:
    """Why a plan that needs an approval is not carried out: nobody has approved it, or that was too long ago."""
    approval = memory.approved
    if approval is not None and approval.plan == plan and snapshot.at >= approval.until:
        passed = number(snapshot.at - approval.until)
        return Hold(reasons.APPROVAL_EXPIRED, f"{why}; the approval of plan {plan} expired {passed} s ago")
    return Hold(reasons.AWAITING_APPROVAL, f"{why}; approve plan {plan}")
