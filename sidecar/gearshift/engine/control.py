# SPDX-License-Identifier: Apache-2.0
"""What the routes do, in the API server's process: ask all cores, within a deadline, and check that they agree."""

import asyncio
from typing import Any, Final

from gearshift.api.engine import EngineState, LayoutRequest, PauseRequest, RoleRequest
from gearshift.engine.compat.base import Compat
from gearshift.engine.core import Report
from gearshift.engine.reports import Shape, disagreements, merge

CALL_TIMEOUT_SECONDS: Final = 10.0
"""A core answers between two of its steps; one that takes longer is stuck or dead."""
_ASK_RANKS: Final = True
_RANKS_MAY_REPEAT: Final = False
_POLL_SECONDS: Final = 0.005


class ControlError(Exception):
    """An order that was not carried out; ``status`` is that of the HTTP answer."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


class Control:
    """The engine behind one API server. Orders are carried out one at a time."""

    def __init__(self, client: Any, compat: Compat, shape: Shape) -> None:
        self._client = client
        self._compat = compat
        self._shape = shape
        self._order = asyncio.Lock()
        self.shift: Report | None = None  # view of a shift engine, as of the last state

    async def state(self) -> EngineState:
        """State of the engine, with the ranks' answer at most a second old."""
        reports = await self._call("gearshift_state", _RANKS_MAY_REPEAT)
        self.shift = reports[0]["shift"]
        return merge(self._shape, reports)

    async def pause(self, request: PauseRequest) -> EngineState:
        """Stop scheduling; returns once the step in flight is done. Without that in time, scheduling goes on."""
        async with self._order:
            try:
                async with asyncio.timeout(request.timeout_seconds):
                    reports = await self._call("gearshift_pause")
                    while not all(report["paused"] for report in reports):
                        await asyncio.sleep(_POLL_SECONDS)
                        reports = await self._call("gearshift_state", _RANKS_MAY_REPEAT)
            except TimeoutError:
                await self._call("resume_scheduler")
                message = f"the step in flight did not end within {request.timeout_seconds:g} s; scheduling goes on"
                raise ControlError(504, "Timeout", message) from None
            except ControlError:
                await self._call("resume_scheduler")  # cores that were too busy to answer get it after the pause
                raise
            return await self._proven("paused", value=True)

    async def resume(self) -> EngineState:
        """Schedule again."""
        async with self._order:
            await self._call("resume_scheduler")
            return await self._proven("paused", value=False)

    async def layout(self, request: LayoutRequest) -> EngineState:
        """Take a layout and its epoch. An engine without a sequence-parallel tree has one layout only."""
        if self._shape.shift:
            return await self._shift(request)
        if request.layout is not self._shape.layout:
            message = f"layout: this engine serves {self._shape.layout.value} only, not {request.layout.value}"
            raise ControlError(422, "NotCapable", message)
        if request.shift_threshold_tokens is not None:
            raise ControlError(422, "NotCapable", "shiftThresholdTokens: only layout Shift has a threshold")
        async with self._order:
            return self._agreed(await self._call("gearshift_epoch", request.epoch))

    async def _shift(self, request: LayoutRequest) -> EngineState:
        threshold = request.shift_threshold_tokens
        async with self._order:
            reports = await self._call("gearshift_layout", request.layout.value, request.epoch, threshold)
            self._check_refusals(reports)
            state = self._agreed(reports)
        if state.layout is not request.layout or (threshold is not None and state.shift_threshold_tokens != threshold):
            found = f"{state.layout.value} with threshold {state.shift_threshold_tokens}"
            raise ControlError(
                500, "NotProven", f"the ranks say layout {found}, not {request.layout.value} {threshold}"
            )
        return state

    async def role(self, request: RoleRequest) -> EngineState:
        """Take a role, its settings and its epoch."""
        async with self._order:
            reports = await self._call("gearshift_role", request.role.value, request.epoch, request.knobs.dump())
            self._check_refusals(reports)
            return self._agreed(reports)

    def _check_refusals(self, reports: list[Report]) -> None:
        refusals = [report["refused"] for report in reports if "refused" in report]
        if refusals:
            raise ControlError(422, "NotCapable", refusals[0])

    async def _proven(self, name: str, *, value: object) -> EngineState:
        reports = await self._call("gearshift_state", _ASK_RANKS)
        if any(report[name] != value for report in reports):
            raise ControlError(500, "NotProven", f"{name} is not {value} on all of {len(reports)} cores")
        return self._agreed(reports)

    def _agreed(self, reports: list[Report]) -> EngineState:
        differing = disagreements(reports)
        if differing:
            raise ControlError(500, "NotProven", f"cores disagree on {', '.join(differing)}")
        return merge(self._shape, reports)

    async def _call(self, method: str, *args: object) -> list[Any]:
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
                return await self._compat.call_all(self._client, method, *args)
        except TimeoutError:
            message = f"{method}: not all cores answered within {CALL_TIMEOUT_SECONDS:g} s"
            raise ControlError(504, "Timeout", message) from None
