# SPDX-License-Identifier: Apache-2.0
"""Plans in words."""

import pytest

from gearshift.api.vocabulary import Layout, Role, TransitionKind
from gearshift.policy.explain import explain, summary
from gearshift.policy.plan import CreatePod, DeletePod, Hold, Plan, Transit

SHIFT = Transit("chat-1", TransitionKind.LAYOUT, "DP", 3, "Queueing")


@pytest.mark.parametrize(
    ("plan", "line"),
    [
        (Plan("i", (SHIFT,), reason="Queueing", message="9 wait"), "Layout of chat-1 to DP (Queueing): 9 wait"),
        (Plan("i", (), (SHIFT,), Hold("Dwell"), "Dwell", "soon"), "Propose: Layout of chat-1 to DP (Dwell): soon"),
        (Plan("i", hold=Hold("Steady"), reason="Steady"), "Hold (Steady)"),
        (Plan("i", (DeletePod("a", "u", "NodeLost", True),), reason="NodeLost"), "Delete a by force (NodeLost)"),
        (
            Plan("i", tuple(CreatePod(n, Role.DECODE, Layout.TP, "PodMissing") for n in range(4)), reason="PodMissing"),
            "Create pod 0 as Decode with layout TP, Create pod 1 as Decode with layout TP and 2 more (PodMissing)",
        ),
    ],
)
def test_one_line(plan: Plan, line: str) -> None:
    """What, why, and the words behind it."""
    assert explain(plan) == line


def test_the_summary_fits_into_status() -> None:
    """Pod names may be long."""
    long = tuple(DeletePod("p" * 200, "u", "Rollout") for _ in range(3))
    assert len(summary(Plan("i", long))) == 253
