# SPDX-License-Identifier: Apache-2.0
"""The host's side of `gearshift.api.host`: HTTP over a Unix socket."""

import re
import signal
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from gearshift.api.engine import EngineError
from gearshift.api.host import HostEvent, ProcessList, ProcessSpec, ShutdownRequest, SignalRequest
from gearshift.engine.host.children import BadSpecError
from gearshift.engine.host.host import Host
from gearshift.engine.host.table import RefusedError

BEAT_SECONDS: Final = 0.9
NAME_PATTERN: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

_HOST: Final = web.AppKey("host", Host)
_Body = TypeVar("_Body", bound=BaseModel)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(host: Host) -> web.Application:
    """The application that serves ``host``."""
    app = web.Application(middlewares=[_errors])
    app[_HOST] = host
    app.router.add_get("/v1/processes", _list)
    app.router.add_put("/v1/processes/{name}", _put)
    app.router.add_post("/v1/processes/{name}/signal", _signal)
    app.router.add_get("/v1/events", _events)
    app.router.add_post("/v1/shutdown", _shutdown)
    return app


@web.middleware
async def _errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except RefusedError as error:
        return _error(409, error.reason, error.message)
    except BadSpecError as error:
        return _error(422, "BadSpec", str(error))
    except ValidationError as error:
        return _error(422, "BadRequest", "; ".join(_explain(one["loc"], one["msg"]) for one in error.errors()))
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _error(error.status, (error.reason or "Error").replace(" ", ""), f"{request.method} {request.path}")


def _explain(location: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, location)) or 'body'}: {message}"


def _error(status: int, reason: str, message: str) -> web.Response:
    return web.json_response(EngineError(reason=reason, message=message).dump(), status=status)


async def _body(request: web.Request, kind: type[_Body]) -> _Body:
    return kind.model_validate_json(await request.read() or b"{}")


async def _list(request: web.Request) -> web.Response:
    table = request.app[_HOST].table
    answer = ProcessList(processes=[entry.status() for entry in table], terminating=table.terminating)
    return web.json_response(answer.dump())


async def _put(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if not NAME_PATTERN.fullmatch(name):
        raise BadSpecError("name", f"{name!r} is not a DNS label")
    entry = request.app[_HOST].put(name, await _body(request, ProcessSpec))
    return web.json_response(entry.status().dump())


async def _signal(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    order = await _body(request, SignalRequest)
    try:
        entry = request.app[_HOST].signal(name, signal.Signals[order.signal])
    except KeyError:
        return _error(404, "NotFound", f"no process {name!r} was started")
    return web.json_response(entry.status().dump())


async def _shutdown(request: web.Request) -> web.Response:
    order = await _body(request, ShutdownRequest)
    request.app[_HOST].order_shutdown(order.grace_seconds)
    return web.Response(status=202)


async def _events(request: web.Request) -> web.StreamResponse:
    host = request.app[_HOST]
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    with host.hub.listen() as stream:
        await response.prepare(request)
        await response.write(_line(HostEvent(kind="Hello")))
        if host.termination is not None:
            await response.write(_line(host.terminating_event()))
        while (event := await stream.next(BEAT_SECONDS)) is not None:
            await response.write(_line(event))
    return response


def _line(event: HostEvent) -> bytes:
    return event.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n"
