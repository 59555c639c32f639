# SPDX-License-Identifier: Apache-2.0
"""One client connection: what aiohttp refuses before any handler runs, in the shape of every other error, an end for
heads that never come whole, and a bound on how many there are.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from gearshift.router.errors import INVALID_REQUEST, ApiError, internal, invalid, quoted

log = logging.getLogger(__name__)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Refused = Callable[[int], None]

HEAD_SECONDS: Final = 10.0  # from the first byte of a head to its last one
LINGER_SECONDS: Final = 2.0  # a client whose body is refused is listened to this long, so that it gets to read why
IDLE_SECONDS: Final = 75.0  # an idle client connection is kept this long
MESSAGE_CHARACTERS: Final = 160
SURPLUS_CONNECTIONS: Final = 1024  # beyond the limit so many are told that they are too many; more are just closed


class Connection(RequestHandler):
    """aiohttp's connection with three things of our own; everything else is its."""

    __slots__ = ("_head_timer", "_refused", "_server", "surplus")

    def __init__(self, server: "ClientServer", *, refused: Refused, **options: Any) -> None:
        super().__init__(server, **options)
        self.surplus = False  # there were enough connections without this one: it gets one answer
        self._server = server
        self._head_timer: asyncio.TimerHandle | None = None
        self._refused = refused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        super().connection_made(transport)
        self._server.open += 1
        surplus = self._server.open - self._server.max_connections
        self.surplus = surplus > 0
        if surplus > SURPLUS_CONNECTIONS:
            self._refused(429)
            self.force_close()
        elif self.surplus:
            self._head_timer = self._loop.call_later(HEAD_SECONDS, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Take bytes; those that make no whole head yet start its clock."""
        super().data_received(data)
        if self._awaits_head():
            if self._head_timer is None:
                self._head_timer = self._loop.call_later(HEAD_SECONDS, self._give_up)
        elif self._head_timer is not None:
            self._stop_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The client is gone."""
        self._server.open -= 1
        self._stop_timer()
        super().connection_lost(exc)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer what could not be parsed. Handlers of this router raise nothing, so nothing else ends here."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        if status != 400:
            log.error("a handler failed", exc_info=exc)
            return self._tell(internal())
        said = " ".join((message or "").partition("\n")[0].split())
        log.info("malformed request from %s: %s", request.remote, said)
        return self._tell(invalid(f"This is not HTTP/1.1: {quoted(said, MESSAGE_CHARACTERS)}.", code="malformed_http"))

    def _awaits_head(self) -> bool:
        """Whether the connection waits for a request after these bytes: they were then but a part of one."""
        return self._waiter is not None and not self._waiter.done()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self.transport is None or not self._awaits_head():
            return
        body = _late().body()
        self._refused(408)
        self.transport.write(
            b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        self.force_close()

    def _tell(self, error: ApiError) -> web.Response:
        self._refused(error.status)
        response = error.response()
        response.force_close()
        return response


def _late() -> ApiError:
    message = f"The head of the request did not arrive within {HEAD_SECONDS:g} s."
    return ApiError(408, INVALID_REQUEST, message, code="head_timeout")


class ClientServer(web.Server):
    """A server of `Connection`s that cancels a handler whose client is gone, and leaves bodies as they came."""

    def __init__(self, handler: Handler, refused: Refused, max_connections: int) -> None:
        super().__init__(
            handler,
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
            lingering_time=LINGER_SECONDS,
            keepalive_timeout=IDLE_SECONDS,
        )
        self._refused = refused
        self.max_connections = max_connections
        self.open = 0  # connections now

    def __call__(self) -> RequestHandler:
        """The protocol of a new connection."""
        return Connection(self, loop=self._loop, refused=self._refused, **self._kwargs)
