# SPDX-License-Identifier: Apache-2.0
"""Reading a request body: whole, bounded in size and time, never decompressed."""

import asyncio
from typing import Final

from aiohttp import web

from gearshift.router.errors import INVALID_REQUEST, ApiError

READ_SECONDS: Final = 60.0  # a client that sends slower than its body in this time is cut off
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


async def read_body(request: web.BaseRequest, limit_bytes: int) -> bytes:
    """The whole body.

    Raises:
        ApiError: 413 too large, 415 compressed, 408 too slow, 400 broken off or badly framed.
    """
    if (encoding := request.headers.get("Content-Encoding", "identity")) != "identity":
        message = f"Content-Encoding {encoding[:32]!r} is not supported; send the body uncompressed."
        raise ApiError(415, INVALID_REQUEST, message, code="unsupported_encoding", close=True)
    declared = request.content_length
    if declared is not None and declared > limit_bytes:
        raise _too_large(limit_bytes)
    content = request.content
    if content.is_eof():  # the common case: it came with its head
        body = content.read_nowait(-1)
        if len(body) > limit_bytes:
            raise _too_large(limit_bytes)
        return body
    return await _read_rest(request, limit_bytes)


async def _read_rest(request: web.BaseRequest, limit_bytes: int) -> bytes:
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(CONTINUE)
    body = bytearray()
    try:
        async with asyncio.timeout(READ_SECONDS):
            while chunk := await request.content.readany():
                body += chunk
                if len(body) > limit_bytes:
                    raise _too_large(limit_bytes)
    except TimeoutError:
        message = f"The request body did not arrive within {READ_SECONDS:g} s."
        raise ApiError(408, INVALID_REQUEST, message, code="body_timeout", close=True) from None
    except (web.RequestPayloadError, ValueError) as error:
        raise ApiError(
            400, INVALID_REQUEST, f"The request body is broken: {error}.", code="invalid_body", close=True
        ) from None
    return bytes(body)


def _too_large(limit_bytes: int) -> ApiError:
    return ApiError(
        413, INVALID_REQUEST, f"The request body is larger than {limit_bytes} bytes.", code="body_too_large", close=True
    )
