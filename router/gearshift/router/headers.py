# SPDX-License-Identifier: Apache-2.0
"""Which headers cross the router. Requests: a short list, so that nothing a client invents reaches an engine. Answers:
all but hop-by-hop.
"""

from collections.abc import Iterable
from typing import Final

from multidict import CIMultiDict

FORWARDED: Final = {
    name.encode(): name
    for name in (
        "accept",
        "authorization",
        "baggage",
        "content-type",
        "traceparent",
        "tracestate",
        "user-agent",
        "x-request-id",
    )
}
"""Request headers that engines may read."""

ALWAYS: Final = {
    "accept": "*/*",
    "accept-encoding": "identity",  # the bytes of an answer are passed on as they come, so they must be plain
    "content-type": "application/json",
    "user-agent": "gearshift-router",
}
"""Request headers that engines get in any case. Being complete, they leave the HTTP client nothing to work out."""

HOP_BY_HOP: Final = frozenset(
    name.encode()
    for name in (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "date",
        "server",
    )
)
"""Answer headers that belong to one connection, and those that the router's own server writes."""

RawHeaders = Iterable[tuple[bytes, bytes]]


def request_headers(raw: RawHeaders) -> dict[str, str]:
    """Headers for the engine, from those of the client; the last of a repeated header counts."""
    headers = ALWAYS.copy()
    for name, value in raw:
        known = FORWARDED.get(name.lower())
        if known is not None:
            headers[known] = value.decode("utf-8", "surrogateescape")
    return headers


def response_headers(raw: RawHeaders) -> CIMultiDict[str]:
    """Headers for the client, from those of the engine."""
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in raw:
        if name.lower() not in HOP_BY_HOP:
            headers.add(name.decode("ascii", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
    return headers
