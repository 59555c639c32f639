# SPDX-License-Identifier: Apache-2.0
"""Every error that a client can get, in the shape of the OpenAI API: ``{"error": {"message", "type", "param",
"code"}}``.
"""

import json
from typing import Final

from aiohttp import web

INVALID_REQUEST: Final = "invalid_request_error"
RATE_LIMIT: Final = "rate_limit_error"
UNAVAILABLE: Final = "service_unavailable_error"
UPSTREAM: Final = "upstream_error"


class ApiError(Exception):
    """Refusal of a request, with everything that its answer needs.

    Args:
        status: HTTP status.
        kind: ``type`` of the OpenAI error.
        message: names what is wrong, and the bad value.
        code: stable word for programs.
        param: field of the request that is wrong.
        retry_after_seconds: value of ``Retry-After``, rounded up to whole seconds.
        allow: value of ``Allow``, which a 405 must have.
        close: the rest of the request is unread, so the connection can't be used again.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after_seconds: float | None = None,
        allow: str | None = None,
        close: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.code = code
        self.param = param
        self.retry_after_seconds = retry_after_seconds
        self.allow = allow
        self.close = close

    def body(self) -> bytes:
        """JSON of the error."""
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return json.dumps({"error": error}).encode()

    def response(self) -> web.Response:
        """Answer to the client."""
        headers = {"Content-Type": "application/json"}
        if self.retry_after_seconds is not None:
            headers["Retry-After"] = str(max(1, -(-int(self.retry_after_seconds * 1000) // 1000)))
        if self.allow is not None:
            headers["Allow"] = self.allow
        response = web.Response(status=self.status, body=self.body(), headers=headers)
        if self.close:
            response.force_close()
        return response


def invalid(
    message: str,
    *,
    param: str | None = None,
    code: str = "invalid_value",
    status: int = 400,
    allow: str | None = None,
) -> ApiError:
    """The client's request is wrong."""
    return ApiError(status, INVALID_REQUEST, message, code=code, param=param, allow=allow)


def internal() -> ApiError:
    """A defect of the router, told to its log and not to the client."""
    return ApiError(500, "server_error", "The router failed; its log says why.", code="internal_error")


def quoted(value: object, limit: int = 64) -> str:
    """``value`` for an error message: printable, and bounded however long the client made it."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)[: limit + 1]
    return ascii(text if len(text) <= limit else text[:limit] + "...")
