# SPDX-License-Identifier: Apache-2.0
"""Routes of `gearshift.api.engine` on the simulated engine, and the one that sets its faults. Loopback peers only."""

import asyncio
import ipaddress
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

from aiohttp import web
from pydantic import BaseModel, Field, ValidationError

from gearshift.api.engine import (
    ENGINE_PREFIX,
    EngineError,
    EngineState,
    LayoutRequest,
    PauseRequest,
    RoleKnobs,
    RoleRequest,
)
from gearshift.sim.engine.faults import Fault
from gearshift.sim.engine.replica import Knobs
from gearshift.sim.engine.runner import SettleTimeoutError
from gearshift.sim.engine.service import Service

_LOG: Final = logging.getLogger(__name__)
_BodyT = TypeVar("_BodyT", bound=BaseModel)


class FaultList(BaseModel):
    """Body and answer of ``/gearshift/v1/faults``: all faults in force."""

    faults: list[Fault] = Field(default_factory=list)


class ControlRefusedError(Exception):
    """A refusal with its status."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class Control:
    """Handlers of one engine."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tasks: set[asyncio.Task[EngineState]] = set()

    def routes(self) -> list[web.RouteDef]:
        """What to add to the application."""
        return [
            web.get(f"{ENGINE_PREFIX}/engine", _guarded(self._engine)),
            web.post(f"{ENGINE_PREFIX}/pause", _guarded(self._pause)),
            web.post(f"{ENGINE_PREFIX}/resume", _guarded(self._resume)),
            web.post(f"{ENGINE_PREFIX}/layout", _guarded(self._layout)),
            web.post(f"{ENGINE_PREFIX}/role", _guarded(self._role)),
            web.get(f"{ENGINE_PREFIX}/faults", _guarded(self._list_faults)),
            web.post(f"{ENGINE_PREFIX}/faults", _guarded(self._set_faults)),
        ]

    async def _engine(self, _: web.Request) -> web.Response:
        return _answer(self._service.state())

    async def _pause(self, request: web.Request) -> web.Response:
        body = await _body(PauseRequest, request)
        async with self._service.switching:
            try:
                await self._service.runner.pause(body.timeout_seconds)
            except SettleTimeoutError as error:
                raise ControlRefusedError(504, "NotSettled", str(error)) from None
            return _answer(self._service.state())

    async def _resume(self, _: web.Request) -> web.Response:
        async with self._service.switching:
            self._service.runner.resume()
            return _answer(self._service.state())

    async def _layout(self, request: web.Request) -> web.Response:
        body = await _body(LayoutRequest, request)
        served = self._service.options.layouts
        if body.layout not in served:
            raise ControlRefusedError(
                422, "NotCapable", f"layout {body.layout} is not served by this engine; served: {', '.join(served)}"
            )
        return _answer(await self._to_the_end(self._switch(body)))

    async def _role(self, request: web.Request) -> web.Response:
        body = await _body(RoleRequest, request)
        knobs = self._checked_knobs(body.knobs)
        return _answer(await self._to_the_end(self._change_role(body, knobs)))

    async def _list_faults(self, _: web.Request) -> web.Response:
        return web.json_response({"faults": self._service.faults.active})

    async def _set_faults(self, request: web.Request) -> web.Response:
        body = await _body(FaultList, request)
        self._service.set_faults(frozenset(body.faults))
        _LOG.warning("faults in force: %s", ", ".join(self._service.faults.active) or "none")
        return web.json_response({"faults": self._service.faults.active})

    async def _to_the_end(self, switch: Awaitable[EngineState]) -> EngineState:
        """Carry a switch through even if the peer hangs up: half a switch is what a fault does, not a client."""
        task = asyncio.ensure_future(switch)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _switch(self, body: LayoutRequest) -> EngineState:
        service = self._service
        async with service.switching:
            if Fault.SAYS_YES_AND_DOES_NOTHING in service.faults:
                return service.state().model_copy(update={"layout": body.layout, "epoch": body.epoch})
            await self._suffer_switch_faults()
            threshold = body.shift_threshold_tokens
            if threshold is None:
                threshold = service.core.arrangement.shift_threshold_tokens
            target = replace(service.core.arrangement, layout=body.layout, shift_threshold_tokens=threshold)
            before = service.core.arrangement
            if target != before:
                await service.runner.switch(target)
            self._commit(body.epoch)
            _LOG.info("layout %s -> %s, epoch %d", before.layout, target.layout, body.epoch)
            return service.state()

    async def _change_role(self, body: RoleRequest, knobs: Knobs) -> EngineState:
        service = self._service
        async with service.switching:
            if Fault.SAYS_YES_AND_DOES_NOTHING in service.faults:
                return service.state().model_copy(update={"role": body.role, "epoch": body.epoch})
            await self._suffer_switch_faults()
            service.runner.set_knobs(knobs)
            before, service.role = service.role, body.role
            self._commit(body.epoch)
            _LOG.info("role %s -> %s, epoch %d", before, body.role, body.epoch)
            return service.state()

    async def _suffer_switch_faults(self) -> None:
        service = self._service
        if Fault.DIE_ON_SWITCH in service.faults:
            _LOG.error("fault %s: the process ends", Fault.DIE_ON_SWITCH)
            os._exit(1)
        if Fault.HANG_ON_SWITCH in service.faults:
            was_paused = service.core.paused
            service.core.pause()
            await service.faults.lifted(Fault.HANG_ON_SWITCH)
            if not was_paused:
                service.runner.resume()

    def _commit(self, epoch: int) -> None:
        service = self._service
        service.epoch = epoch
        world = service.options.arrangement.accelerators
        service.ranks = world // 2 if Fault.SWITCH_HALF_OF_RANKS in service.faults else world

    def _checked_knobs(self, asked: RoleKnobs) -> Knobs:
        """Knobs for a role: None means the value at start, which also bounds batch sizes (buffers are made once)."""
        start = self._service.options.knobs
        for field in ("max_num_batched_tokens", "max_num_seqs"):
            value, limit = getattr(asked, field), getattr(start, field)
            if value is not None and value > limit:
                raise ControlRefusedError(
                    422, "NotCapable", f"knobs.{field}: {value} is above {limit}, the value at start"
                )
        return replace(start, **asked.model_dump(exclude_none=True))


_Handler = Callable[[web.Request], Awaitable[web.Response]]


def _guarded(handler: _Handler) -> _Handler:
    """``handler`` for loopback peers, its refusals as `EngineError`."""

    async def guarded(request: web.Request) -> web.Response:
        if not is_loopback(request.remote):
            return _error(403, "NotLoopback", f"{request.path} is served to loopback peers only")
        try:
            return await handler(request)
        except ControlRefusedError as error:
            return _error(error.status, error.reason, str(error))

    return guarded


def is_loopback(address: str | None) -> bool:
    """Whether a peer's address is on this machine's loopback interface."""
    if address is None:
        return False
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).is_loopback


async def _body(kind: type[_BodyT], request: web.Request) -> _BodyT:
    raw = await request.read()
    try:
        return kind.model_validate_json(raw or b"{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise ControlRefusedError(
            422, "InvalidRequest", f"{field}: {first['msg']} (value: {first['input']!r:.200})"
        ) from None


def _answer(state: EngineState) -> web.Response:
    return web.json_response(state.dump())


def _error(status: int, reason: str, message: str) -> web.Response:
    return web.json_response(EngineError(reason=reason, message=message).dump(), status=status)
