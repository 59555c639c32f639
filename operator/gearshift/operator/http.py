# SPDX-License-Identifier: Apache-2.0
"""The only module of the operator that uses httpx: short control calls to sidecars and Prometheus."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx

_LIMIT_BYTES: Final = 4 * 1024 * 1024


class HttpError(Exception):
    """There was no usable answer; the message names the URL and the cause."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and JSON body of an answer."""

    status: int
    body: Any


class Http:
    """A pool of connections. Redirects are not followed and proxies of the environment not used."""

    def __init__(self, client: httpx.AsyncClient, connections: int) -> None:
        self._client = client
        self._turns = asyncio.Semaphore(connections)  # a call waits for its turn before its time begins

    @classmethod
    @asynccontextmanager
    async def connect(cls, *, timeout_seconds: float = 2.0, connections: int = 64) -> AsyncIterator["Http"]:
        """Open a pool; it is closed on exit."""
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        async with httpx.AsyncClient(timeout=timeout_seconds, limits=limits, trust_env=False) as client:
            yield cls(client, connections)

    async def call(
        self,
        method: str,
        url: str,
        *,
        body: Any = None,
        form: Mapping[str, str] | None = None,
        bearer: str | None = None,
        timeout_seconds: float | None = None,
    ) -> Answer:
        """One request with a JSON or form body.

        Raises:
            HttpError: no answer in time, or one that is not JSON.
        """
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        timeout = httpx.USE_CLIENT_DEFAULT if timeout_seconds is None else httpx.Timeout(timeout_seconds)
        try:
            async with self._turns:
                response = await self._client.request(
                    method, url, json=body, data=form, headers=headers, timeout=timeout
                )
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise HttpError(f"{method} {url}: {type(problem).__name__} {problem}".rstrip()) from problem
        if len(response.content) > _LIMIT_BYTES:
            raise HttpError(f"{method} {url}: answer of {len(response.content)} bytes is over {_LIMIT_BYTES}")
        try:
            return Answer(response.status_code, response.json() if response.content else None)
        except ValueError as problem:
            raise HttpError(f"{method} {url}: status {response.status_code}, body is not JSON") from problem
