# SPDX-License-Identifier: Apache-2.0
"""Faults to rehearse: what a broken engine does, on request (``--fault`` or ``POST /gearshift/v1/faults``)."""

import asyncio
from enum import StrEnum


class Fault(StrEnum):
    """One way to be broken. Each lasts until the set of faults is replaced."""

    SAYS_YES_AND_DOES_NOTHING = "says-yes-and-does-nothing"  # /layout and /role answer as ordered and change nothing
    SWITCH_HALF_OF_RANKS = "switch-half-of-ranks"  # after a switch, half of the ranks answer for the new state
    HANG_ON_SWITCH = "hang-on-switch"  # a switch stops the engine and answers once the fault is lifted
    DIE_ON_SWITCH = "die-on-switch"  # a switch ends the process with status 1
    SLOW_START = "slow-start"  # start-up takes ten times as long
    FAIL_PROBE = "fail-probe"  # every completion gets a 500, while /health says 200
    FAIL_PROBE_AFTER_SWITCH = "fail-probe-after-switch"  # the same, but not in the layout and role at which it was set
    LOSE_KV = "lose-kv"  # other engines do not find the KV that this one keeps for them


SLOW_START_FACTOR = 10


class Faults:
    """The faults in force."""

    def __init__(self, active: frozenset[Fault]) -> None:
        self._active = active
        self._changed = asyncio.Event()

    def __contains__(self, fault: Fault) -> bool:
        return fault in self._active

    @property
    def active(self) -> list[Fault]:
        """Faults in force, sorted."""
        return sorted(self._active)

    def replace(self, active: frozenset[Fault]) -> None:
        """Put ``active`` in the place of those in force."""
        self._active = active
        self._changed.set()
        self._changed = asyncio.Event()

    async def lifted(self, fault: Fault) -> None:
        """Return when ``fault`` is not in force."""
        while fault in self._active:
            await self._changed.wait()
