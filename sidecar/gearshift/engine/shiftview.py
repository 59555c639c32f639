# SPDX-License-Identifier: Apache-2.0
"""The shift engine as its EngineCore sees it: what the ranks say of the threshold, and what a layout asks of it. Pure.

One engine serves layouts TP, Shift and SP by its threshold alone: steps with more scheduled tokens run sequence
parallel.
"""

from collections.abc import Sequence
from typing import Any, Final

from gearshift.api.vocabulary import Layout

NEVER_TOKENS: Final = 2**31 - 1
"""Threshold that no step exceeds: layout TP."""

WORKERS: Final = "gearshift.engine.shift."
"""Every ``--worker-cls`` of the shift engine begins so."""

Answer = dict[str, Any]
"""What one rank answers: ``rank``, and ``shift`` (None in an engine without a sequence-parallel tree)."""


def agreeing(answers: Sequence[Answer]) -> int:
    """Ranks that answered and hold the same threshold as the first."""
    return len({answer["rank"] for answer in answers if _threshold(answer) == _threshold(answers[0])})


def summary(answers: Sequence[Answer]) -> Answer | None:
    """One view of the engine: what is equal on all ranks from the first, bytes added up. None without shift."""
    first: Answer | None = answers[0]["shift"] if answers else None
    if first is None:
        return None
    sent = sum(answer["shift"]["exchangedBytes"] for answer in answers if answer["shift"] is not None)
    return {**first, "exchangedBytes": sent}


def served(shift: Answer) -> list[Layout]:
    """Layouts that the engine can take. SP needs every step to reach the choice, so no graph may be captured."""
    return [Layout.SHIFT, Layout.TP, *([Layout.SP] if shift["floorTokens"] == 0 else [])]


def first_layout(shift: Answer) -> Layout:
    """Layout of an engine that was just started: SP is Shift with a threshold of no tokens."""
    return Layout.SP if shift["thresholdTokens"] == 0 else Layout.SHIFT


def threshold_for(layout: Layout, asked: int | None, start: int) -> int:
    """Threshold that a layout asks for; ``start`` is the one that the engine has chosen when it started."""
    if layout is Layout.SHIFT:
        return start if asked is None else asked
    return NEVER_TOKENS if layout is Layout.TP else 0


def refusal(shift: Answer, layout: Layout, asked: int | None, start: int) -> str | None:
    """Why the engine can't take a layout with a threshold, or None."""
    if layout not in served(shift):
        return f"layout: this engine serves {', '.join(served(shift))} only, not {layout.value}"
    if layout is not Layout.SHIFT and asked is not None:
        return f"shiftThresholdTokens: only layout Shift has a threshold, not {layout.value}"
    wanted, floor = threshold_for(layout, asked, start), shift["floorTokens"]
    if wanted < floor:
        return f"shiftThresholdTokens: {wanted} is below {floor}, the largest graph that was captured"
    return None


def _threshold(answer: Answer) -> int | None:
    shift: Answer | None = answer["shift"]
    return None if shift is None else int(shift["thresholdTokens"])
