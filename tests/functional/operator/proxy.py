# SPDX-License-Identifier: Apache-2.0
"""Stands between an operator and the API server and does what networks, load balancers and overloaded or lagging API
servers do: refuses, delays, loses answers, breaks watches, and shows lists as they once were."""

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
from aiohttp import web

from gscluster.fast import FastCluster
from tests.functional.loops import LoopThread
from tests.functional.operator.faults import Call, Fault, call_of, writing

_NOT_PASSED = frozenset({"host", "connection", "transfer-encoding", "content-length", "accept-encoding"})
_GONE = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
_HALF_A_LINE = b'{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"na'


class Proxy:
    """Listens on loopback without TLS. What is public may be used from any thread."""

    def __init__(self, cluster: FastCluster) -> None:
        self._server = cluster.endpoints.server
        self._trust = ssl.create_default_context(cafile=str(cluster.folder / "pki/ca.crt"))
        self._faults: list[Fault] = []
        self._gates: list[tuple[Callable[[Call], bool], asyncio.Event]] = []
        self._watches: dict[int, asyncio.Future[str]] = {}  # how each shall end
        self._frozen: dict[str, tuple[int, bytes]] | None = None
        self.waiting = 0  # calls at a gate
        self.lagged: list[str] = []  # paths of the lists that were answered from the past
        self.written: list[Call] = []  # writes that the API server has taken
        self.after_write: Callable[[Call], None] | None = None  # called between a write and its answer
        self._loop = LoopThread()
        self._runner, self._session = self._loop.run(self._start())
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def close(self) -> None:
        """Break every connection and stop."""
        self.break_watches("reset")
        self._loop.run(self._stop())
        self._loop.close()

    @contextlib.contextmanager
    def fault(self, fault: Fault) -> Iterator[Fault]:
        """Something is wrong until the end of the block."""
        self._faults.append(fault)
        try:
            yield fault
        finally:
            self._faults.remove(fault)

    @contextlib.contextmanager
    def gate(self, concerns: Callable[[Call], bool]) -> Iterator[None]:
        """Calls wait until the end of the block, and go on to the API server even when their sender has given up."""
        shut = (concerns, asyncio.Event())
        self._gates.append(shut)
        try:
            yield
        finally:
            self._gates.remove(shut)
            self._loop.call(shut[1].set)

    @contextlib.contextmanager
    def lagging(self) -> Iterator[None]:
        """Until the end of the block, every list is answered as at the beginning of it, as far as it was asked before.

        Watches go on from the version of such a list, so that all that happened since comes by them.
        """
        self._frozen = self._loop.run(self._listed())
        try:
            yield
        finally:
            self._frozen = None

    def break_watches(self, how: str) -> int:
        """End all watches: ``clean``, ``reset`` in the middle of a line, ``gone`` (410), ``error`` (500); how many."""
        return self._loop.run(self._break(how))

    async def _start(self) -> tuple[web.AppRunner, aiohttp.ClientSession]:
        self._lists: dict[str, dict[str, str]] = {}  # path and query -> headers of the last one who asked
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        connector = aiohttp.TCPConnector(ssl=self._trust, limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        return runner, aiohttp.ClientSession(connector=connector, timeout=timeout)

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _break(self, how: str) -> int:
        open_now = list(self._watches.values())
        for ending in open_now:
            if not ending.done():
                ending.set_result(how)
        return len(open_now)

    async def _listed(self) -> dict[str, tuple[int, bytes]]:
        found = {}
        for path, headers in self._lists.items():
            async with self._session.get(self._server + path, headers=headers) as answer:
                found[path] = (answer.status, await answer.read())
        return found

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        call = call_of(request.method, request.path, request.query)
        body = await request.read()
        met = [fault for fault in self._faults if fault.hits(call)]
        for fault in met:
            await asyncio.sleep(fault.delay_seconds)
            if fault.status is not None:
                return _refusal(fault.status)
        # A call that is on its way arrives, whatever becomes of the process that has sent it.
        passing = asyncio.ensure_future(self._pass_on(request, call, body))
        answer = await (passing if call.watch else asyncio.shield(passing))
        if any(fault.loses_answer for fault in met):
            _reset(request)
        return answer

    async def _pass_on(self, request: web.Request, call: Call, body: bytes) -> web.StreamResponse:
        for concerns, opened in list(self._gates):
            if concerns(call):
                self.waiting += 1
                await opened.wait()
                self.waiting -= 1
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED}
        if call.lists:
            self._lists[request.path_qs] = headers
            if self._frozen is not None and request.path_qs in self._frozen:
                self.lagged.append(call.path)
                status, content = self._frozen[request.path_qs]
                return web.Response(status=status, body=content, content_type="application/json")
        url = self._server + request.path_qs
        async with self._session.request(request.method, url, headers=headers, data=body or None) as answer:
            if call.watch and answer.status == 200:
                return await self._stream(request, answer)
            content = await answer.read()
        if writing(call):
            self._wrote(call)
        return web.Response(status=answer.status, body=content, content_type="application/json")

    def _wrote(self, call: Call) -> None:
        self.written.append(call)
        if self.after_write is not None:
            self.after_write(call)

    async def _stream(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        """Pass a watch on until either side, or the test, ends it."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        ending: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._watches[id(ending)] = ending
        pump = asyncio.ensure_future(_pump(answer, response))
        try:
            sides: set[asyncio.Future[Any]] = {pump, ending}
            await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pump.cancel()
            del self._watches[id(ending)]
        if ending.done():
            with contextlib.suppress(ConnectionResetError):  # its reader was quicker
                await _end(request, response, ending.result())
        return response


async def _pump(answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    async for line in answer.content:
        await response.write(line)


async def _end(request: web.Request, response: web.StreamResponse, how: str) -> None:
    if how in ("gone", "error"):
        status = _GONE if how == "gone" else {**_GONE, "reason": "InternalError", "code": 500}
        await response.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
    if how == "reset":
        await response.write(_HALF_A_LINE)
        _reset(request)


def _refusal(status: int) -> web.Response:
    """What an API server that can't answer now says."""
    reason = "TooManyRequests" if status == 429 else "InternalError"
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status}
    return web.json_response(body, status=status, headers={"Retry-After": "1"} if status == 429 else None)


def _reset(request: web.Request) -> None:
    """Break the connection as a machine that vanishes does: RST, nothing flushed."""
    transport = request.transport
    if transport is None:
        return
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
