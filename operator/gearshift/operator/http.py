# SPDX-License-Identifier: Apache-2.0
"""Short control calls to sidecars and Prometheus.

A look at a service asks each of its pods, so that a large cluster means hundreds of calls a second, nearly each to
another host. A connection that is kept for the next call takes some 12 kB, so those to sidecars are not.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

_LIMIT_BYTES: Final = 4 * 1024 * 1024
_KEPT_SECONDS: Final = 5.0


class HttpError(Exception):
    """There was no usable answer; the message names the URL and the cause."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and JSON body of an answer."""

    status: int
    body: Any


class Http:
    """A pool of connections. Redirects are not followed and proxies of the environment not used."""

    def __init__(self, session: aiohttp.ClientSession, timeout_seconds: float, connections: int) -> None:
        self._session = session
        self._timeout_seconds = timeout_seconds
        self._turns = asyncio.Semaphore(connections)  # a call waits for its turn before its time begins

    @classmethod
    @asynccontextmanager
    async def connect(cls, *, timeout_seconds: float = 2.0, connections: int = 512) -> AsyncIterator["Http"]:
        """Open a pool; it is closed on exit."""
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_SECONDS)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            yield cls(session, timeout_seconds, connections)

    async def call(
        self,
        method: str,
        url: str,
        *,
        body: Any = None,
        form: Mapping[str, str] | None = None,
        bearer: str | None = None,
        timeout_seconds: float | None = None,
        keep: bool = True,
    ) -> Answer:
        """One request with a JSON or form body; ``keep``: its connection may serve another one soon.

        Raises:
            HttpError: no answer in time, or one that is not JSON.
        """
        headers = {} if keep else {"connection": "close"}
        if bearer:
            headers["authorization"] = f"Bearer {bearer}"
        timeout = aiohttp.ClientTimeout(total=self._timeout_seconds if timeout_seconds is None else timeout_seconds)
        try:
            async with (
                self._turns,
                self._session.request(
                    method, url, json=body, data=form, headers=headers, timeout=timeout, allow_redirects=False
                ) as response,
            ):
                content = await _content(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise HttpError(f"{method} {url}: {type(problem).__name__} {problem}".rstrip()) from problem
        try:
            return Answer(response.status, json.loads(content) if content else None)
        except ValueError as problem:
            raise HttpError(f"{method} {url}: status {response.status}, body is not JSON") from problem


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """The whole body.

    Raises:
        HttpError: it is too large.
    """
    content = bytearray()
    async for part in response.content.iter_any():
        content += part
        if len(content) > _LIMIT_BYTES:
            raise HttpError(f"{response.method} {response.url}: answer is over {_LIMIT_BYTES} bytes")
    return bytes(content)
