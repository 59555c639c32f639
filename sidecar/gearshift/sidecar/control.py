# SPDX-License-Identifier: Apache-2.0
"""The control API of a pod (`gearshift.api.wire`) as an aiohttp application: authentication, bodies in, bodies out."""

import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from aiohttp import web
from pydantic import ValidationError

from gearshift.api import reasons
from gearshift.api.base import TolerantModel
from gearshift.api.wire import Ack, ControlError, TransitionRequest
from gearshift.sidecar.agent import Agent
from gearshift.sidecar.auth import Authenticator, AuthUnavailableError
from gearshift.sidecar.orders import Accepted, Refused

log = logging.getLogger(__name__)
MAX_BODY_BYTES: Final = 64 * 1024
_Body = TypeVar("_Body", bound=TolerantModel)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

AGENT: Final = web.AppKey("agent", Agent)
AUTHENTICATOR: Final = web.AppKey("authenticator", Authenticator)


class _RefusedError(Exception):
    """Ends a request with a `ControlError`."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.error = ControlError(reason=reason, message=message)


def make_control_app(agent: Agent, authenticator: Authenticator) -> web.Application:
    """The control API of one pod."""
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_errors, _authenticate])
    app[AGENT] = agent
    app[AUTHENTICATOR] = authenticator
    app.on_shutdown.append(_end_streams)
    app.router.add_get("/v1/state", _get_state)
    app.router.add_get("/v1/state/stream", _stream_state)
    app.router.add_post("/v1/acks", _post_ack)
    app.router.add_post("/v1/transitions", _post_transition)
    app.router.add_get("/v1/transitions/{id}", _get_transition)
    return app


@web.middleware
async def _errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except _RefusedError as error:
        return _answer(error.error, error.code)
    except web.HTTPException as error:
        reason = reasons.NOT_FOUND if error.status == 404 else reasons.BAD_REQUEST
        message = f"{request.method} {request.path}: {error.reason}"
        return _answer(ControlError(reason=reason, message=message), error.status)


@web.middleware
async def _authenticate(request: web.Request, handler: _Handler) -> web.StreamResponse:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise _RefusedError(401, reasons.UNAUTHORIZED, "a bearer token is required")
    try:
        review = await request.app[AUTHENTICATOR].account(token.strip())
    except AuthUnavailableError as error:
        raise _RefusedError(503, reasons.AUTH_UNAVAILABLE, str(error)) from error
    if not review.account:
        raise _RefusedError(401, reasons.UNAUTHORIZED, review.problem)
    if not _may(request, review.account):
        raise _RefusedError(403, reasons.FORBIDDEN, f"{review.account} may not {request.method} {request.path}")
    return await handler(request)


def _may(request: web.Request, account: str) -> bool:
    config = request.app[AGENT].pod.settings.config
    if account == config.operator_account:
        return True
    return account == config.router_account and not request.path.startswith("/v1/transitions")


async def _get_state(request: web.Request) -> web.Response:
    return _answer(request.app[AGENT].state())


async def _stream_state(request: web.Request) -> web.StreamResponse:
    """One line a change. A router names itself, so that drains wait for its word."""
    agent = request.app[AGENT]
    router = request.query.get("router", "")
    if len(router) > 253:
        raise _RefusedError(400, reasons.BAD_REQUEST, "query parameter router: longer than 253 characters")
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
    await response.prepare(request)
    _limit_silence(request, agent.pod.settings.timings.router_silence)
    with agent.hub.subscribe(lambda: _cut(request, router)) as subscription:
        if router:
            agent.stream_opened(router)
        try:
            await response.write(agent.state_line())
            while line := await subscription.next():
                await response.write(line)
        except ConnectionError:
            log.debug("state stream of %s: the reader is gone", router or request.remote)
        finally:
            if router:
                agent.stream_closed(router)
    return response


def _limit_silence(request: web.Request, seconds: float) -> None:
    """Have the kernel end the connection of a reader whose machine is gone: TCP alone would try for 15 minutes."""
    connection = None if request.transport is None else request.transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


async def _end_streams(app: web.Application) -> None:
    app[AGENT].hub.close()


def _cut(request: web.Request, router: str) -> None:
    log.warning("state stream of %s is cut: it does not keep pace", router or request.remote)
    if request.transport is not None:
        request.transport.abort()


async def _post_ack(request: web.Request) -> web.Response:
    request.app[AGENT].acknowledge(await _read(request, Ack))
    return web.Response(status=204)


async def _post_transition(request: web.Request) -> web.Response:
    agent = request.app[AGENT]
    order = await _read(request, TransitionRequest)
    judgement = agent.order(order)
    if isinstance(judgement, Refused):
        return _answer(judgement.error, judgement.code)
    status = agent.record.find(order.id) if isinstance(judgement, Accepted) else judgement.status
    if status is None:
        raise RuntimeError(f"accepted order {order.id!r} left no status")
    return _answer(status, 202)


async def _get_transition(request: web.Request) -> web.Response:
    transition_id = request.match_info["id"]
    status = request.app[AGENT].record.find(transition_id)
    if status is None:
        raise _RefusedError(404, reasons.NOT_FOUND, f"no transition {transition_id!r} is remembered")
    return _answer(status)


async def _read(request: web.Request, model: type[_Body]) -> _Body:
    body = await request.read()
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc']) or 'body'}: {item['msg']}, got {item['input']!r:.80}"
            for item in error.errors(include_url=False)
        )
        raise _RefusedError(400, reasons.BAD_REQUEST, problems) from error


def _answer(model: TolerantModel, status: int = 200) -> web.Response:
    return web.json_response(model.dump(), status=status)
