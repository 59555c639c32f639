# SPDX-License-Identifier: Apache-2.0
"""What a pod is to be, by its record: committed, or as the order in flight leads to. Pure."""

from dataclasses import dataclass

from gearshift.api.engine import EngineState
from gearshift.api.vocabulary import Layout, Role
from gearshift.sidecar.ledger import Record, target_of, threshold_of


@dataclass(frozen=True, slots=True)
class Target:
    """What a pod is to be."""

    layout: Layout
    role: Role
    epoch: int
    shift_threshold_tokens: int | None = None  # in layout Shift; None: whatever the engine has

    def threshold(self, state: EngineState) -> int | None:
        """Threshold that an engine in this state should have: its own where none was asked for."""
        asked = self.layout is Layout.SHIFT and self.shift_threshold_tokens is not None
        return self.shift_threshold_tokens if asked else state.shift_threshold_tokens


def committed(record: Record) -> Target:
    """What the record says that the pod is."""
    return Target(record.layout, record.role, record.epoch, record.shift_threshold_tokens)


def ordered(record: Record) -> Target:
    """What the order in flight leads to."""
    layout, role = target_of(record)
    return Target(layout, role, record.epoch + 1, threshold_of(record))
