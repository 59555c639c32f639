# SPDX-License-Identifier: Apache-2.0
"""The decisions on a recording as text: one line whenever the decision is another one than at the tick before."""

from collections.abc import Iterable, Iterator

from gearshift.policy.decide import decide
from gearshift.policy.explain import summary
from gearshift.policy.memory import fold
from gearshift.policy.plan import Memory, Plan
from gearshift.policy.snapshot import Snapshot


def decision_log(snapshots: Iterable[Snapshot], started_at: float = 0.0) -> Iterator[str]:
    """Lines of ``time decision (reason) [pods asked for]: message`` of an operator that watches since then."""
    memory = Memory(started_at)
    last: tuple[object, ...] = ()
    for snapshot in snapshots:
        memory = fold(memory, snapshot)
        plan = decide(snapshot, memory)
        decided = (summary(plan), _reason(plan), plan.pods)
        if decided != last:
            last = decided
            pods = "" if plan.pods is None else f" [{plan.pods} pods]"
            yield f"{_clock(snapshot.at)} {summary(plan)} ({_reason(plan)}){pods}: {plan.message}".rstrip(": ")


def _reason(plan: Plan) -> str:
    return plan.hold.reason if plan.hold is not None else plan.reason


def _clock(at: float) -> str:
    seconds = int(at)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
