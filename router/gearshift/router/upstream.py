# SPDX-License-Identifier: Apache-2.0
"""One attempt of a request at one engine: send, and pass the answer's bytes on as they come.

Nothing is sent to the client before the engine's first byte, so any failure until then can be repaired on another pod.
After it, a lost engine can't be hidden: the client's connection is closed without its proper end, which every client
reports as a broken answer; a server-sent event stream that stands at the end of an event gets one more, an error in
OpenAI's shape, before that.
"""

import logging
import socket
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from aiohttp import (
    AddrInfoType,
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
    web,
)

from gearshift.router.errors import UPSTREAM, ApiError
from gearshift.router.fleet import Pod
from gearshift.router.headers import response_headers

log = logging.getLogger(__name__)

BUFFERED_BYTES: Final = (
    256 * 1024
)  # answers of a known length up to this are read whole, and so can be repaired to their last byte
KEEPALIVE_SECONDS: Final = 4.0  # below the 5 s after which vLLM's server closes an idle connection
UNACKNOWLEDGED_SECONDS: Final = 25.0
"""How long TCP may leave what was sent to an engine unacknowledged, the same as the time to find an idle one gone."""
EVENT_ENDS: Final = (b"\n\n", b"\r\n\r\n")
UNREACHABLE: Final = (ClientError, OSError, TimeoutError)


class Reason(StrEnum):
    """Why an attempt failed before the first byte."""

    CONNECT = "connect"
    RESET = "reset"
    BUSY = "status_503"


class AttemptError(Exception):
    """The attempt failed before the first byte: another pod may be tried."""

    def __init__(self, reason: Reason, pod: Pod, detail: str) -> None:
        super().__init__(f"pod {pod.endpoint.name}: {detail}")
        self.reason = reason
        self.pod = pod


def engine_session(connect_timeout_seconds: float) -> ClientSession:
    """The client of the data path: no limit on connections, no cookies, no time limit but that of connecting.

    An engine may think for minutes before its first byte, so dead nodes are found by TCP instead of a read timeout:
    by its keep-alive, and while sent bytes are unacknowledged, when that rests, by its user timeout.
    """
    connector = TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS, use_dns_cache=False, socket_factory=_socket)
    return ClientSession(
        connector=connector,
        timeout=ClientTimeout(total=None, sock_connect=connect_timeout_seconds),
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
    )


def _socket(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    sock = socket.socket(family=family, type=kind, proto=protocol)
    sock.setblocking(False)  # noqa: FBT003
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNACKNOWLEDGED_SECONDS * 1000))
    return sock


async def send(session: ClientSession, pod: Pod, path: str, body: bytes, headers: dict[str, str]) -> ClientResponse:
    """Post ``body`` to the pod's engine and wait for the head of its answer.

    Raises:
        AttemptError: no answer, or 503.
        ApiError: a redirect, which is never followed.
    """
    try:
        answer = await session.post(pod.url(path), data=body, headers=headers, allow_redirects=False)
    except (ClientConnectorError, ConnectionTimeoutError) as error:
        raise AttemptError(Reason.CONNECT, pod, repr(error)) from error
    except UNREACHABLE as error:
        raise AttemptError(Reason.RESET, pod, repr(error)) from error
    if answer.status == 503:
        answer.close()
        raise AttemptError(Reason.BUSY, pod, "answered 503")
    if 300 <= answer.status < 400:
        answer.close()
        raise ApiError(502, UPSTREAM, f"Pod {pod.endpoint.name} answered with a redirect.", code="bad_upstream_answer")
    return answer


async def read(answer: ClientResponse, pod: Pod) -> bytes:
    """The whole body of an answer.

    Raises:
        AttemptError: it broke off.
    """
    try:
        return await answer.read()
    except UNREACHABLE as error:
        raise AttemptError(Reason.RESET, pod, repr(error)) from error
    finally:
        answer.close()


def relayed(answer: ClientResponse, body: bytes) -> web.Response:
    """An answer that was read whole, for the client."""
    return web.Response(
        body=body, status=answer.status, reason=answer.reason, headers=response_headers(answer.raw_headers)
    )


def is_short(answer: ClientResponse) -> bool:
    """Whether an answer is to be read whole."""
    length = answer.content_length
    return length is not None and length <= BUFFERED_BYTES


async def relay_stream(
    request: web.BaseRequest, answer: ClientResponse, pod: Pod, first_byte: Callable[[], None]
) -> tuple[web.StreamResponse, bool]:
    """Pass an answer on to the client as it comes; returns it and whether it's complete.

    ``first_byte`` is called when the engine's first byte is there.

    Raises:
        AttemptError: the engine was lost before its first byte.
    """
    try:
        return await _stream(request, answer, pod, first_byte)
    finally:
        answer.close()  # drops the connection unless the answer was read to its end


async def _stream(
    request: web.BaseRequest, answer: ClientResponse, pod: Pod, first_byte: Callable[[], None]
) -> tuple[web.StreamResponse, bool]:
    readany = answer.content.readany
    try:
        chunk = await readany()
    except UNREACHABLE as error:
        raise AttemptError(Reason.RESET, pod, repr(error)) from error
    first_byte()
    response = web.StreamResponse(
        status=answer.status, reason=answer.reason, headers=response_headers(answer.raw_headers)
    )
    if answer.content_length is not None:
        response.content_length = answer.content_length
    await response.prepare(request)
    write = response.write
    while chunk:
        await write(chunk)
        last = chunk
        try:
            chunk = await readany()
        except UNREACHABLE as error:
            log.warning("pod %s was lost in the middle of a stream: %r", pod.endpoint.name, error)
            await _break_off(request, response, last, pod)
            return response, False
    await response.write_eof()
    return response, True


async def _break_off(request: web.BaseRequest, response: web.StreamResponse, last: bytes, pod: Pod) -> None:
    """End the client's stream so that it can't be taken for a complete one."""
    if response.content_type == "text/event-stream" and last.endswith(EVENT_ENDS):
        message = f"Pod {pod.endpoint.name} was lost in the middle of the answer."
        event = ApiError(502, UPSTREAM, message, code="stream_interrupted").body()
        await response.write(b"data: " + event + b"\n\n")
    if request.transport is not None:
        request.transport.close()
