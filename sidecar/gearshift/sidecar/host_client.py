# SPDX-License-Identifier: Apache-2.0
"""Calls to the engine host over its Unix socket: start, signal and watch the engine processes of this pod."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from pydantic import BaseModel, ValidationError

from gearshift.api.base import TolerantModel
from gearshift.api.host import HostEvent, ProcessList, ProcessSpec, ProcessStatus, ShutdownRequest, SignalRequest

_Answer = TypeVar("_Answer", bound=BaseModel)
_BASE = "http://host"
_MAX_LINE_BYTES = 4 * 1024 * 1024


class HostCallError(RuntimeError):
    """The engine host did not do what it was asked; the message names the request and the cause."""

    def __init__(self, message: str, *, absent: bool = False) -> None:
        super().__init__(message)
        self.absent = absent  # nobody listens on the socket: the engine container does not run


class HostClient:
    """The engine host of this pod."""

    def __init__(self, socket: Path, call_seconds: float) -> None:
        self._socket = socket
        self._call_seconds = call_seconds
        self._opened: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Give the connections back."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def processes(self) -> ProcessList:
        """All processes that the host knows."""
        return await self._call("GET", "/v1/processes", None, ProcessList)

    async def start(self, name: str, spec: ProcessSpec) -> ProcessStatus:
        """Start a process; harmless when it runs with the same spec."""
        return await self._call("PUT", f"/v1/processes/{name}", spec, ProcessStatus)

    async def signal(self, name: str, request: SignalRequest) -> ProcessStatus:
        """Send a signal to a process and its children."""
        return await self._call("POST", f"/v1/processes/{name}/signal", request, ProcessStatus)

    async def shut_down(self, grace_seconds: float) -> None:
        """Have the host stop all processes and exit."""
        await self._request("POST", "/v1/shutdown", ShutdownRequest(grace_seconds=grace_seconds))

    async def events(self, silence_seconds: float) -> AsyncIterator[HostEvent]:
        """Events of the host until its stream ends.

        Raises:
            HostCallError: no stream, a line that is no event, or nothing for ``silence_seconds``.
        """
        limit = aiohttp.ClientTimeout(total=None, sock_connect=self._call_seconds, sock_read=silence_seconds)
        try:
            async with self._session().get(f"{_BASE}/v1/events", timeout=limit) as response:
                if response.status != 200:
                    raise HostCallError(f"GET /v1/events: {response.status} {(await response.text())[:300]}")
                async for line in response.content:
                    if line.strip():
                        yield HostEvent.model_validate_json(line)
        except ValidationError as error:
            raise HostCallError(f"GET /v1/events: not a HostEvent: {error}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            absent = isinstance(error, aiohttp.ClientConnectorError)
            raise HostCallError(f"GET /v1/events: {error!r}", absent=absent) from error

    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            connector = aiohttp.UnixConnector(path=str(self._socket))
            self._opened = aiohttp.ClientSession(connector=connector, read_bufsize=_MAX_LINE_BYTES)
        return self._opened

    async def _call(self, method: str, path: str, body: TolerantModel | None, answer: type[_Answer]) -> _Answer:
        data = await self._request(method, path, body)
        try:
            return answer.model_validate(data)
        except ValidationError as error:
            raise HostCallError(f"{method} {path}: answer is no {answer.__name__}: {error}") from error

    async def _request(self, method: str, path: str, body: TolerantModel | None) -> Any:
        limit = aiohttp.ClientTimeout(total=self._call_seconds)
        payload = None if body is None else body.dump()
        try:
            async with self._session().request(method, _BASE + path, json=payload, timeout=limit) as response:
                text = await response.text()
                if response.status >= 300:
                    raise HostCallError(f"{method} {path}: {response.status} {text[:300]}")
                return await response.json(content_type=None) if text.strip() else None
        except TimeoutError as error:
            raise HostCallError(f"{method} {path}: no answer within {self._call_seconds:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise HostCallError(f"{method} {path}: {error!r}") from error
