# SPDX-License-Identifier: Apache-2.0
"""An API server of two resources whose faults a test chooses: lists, watches with bookmarks, 410 Gone, drops, silence,
absence.
"""

import asyncio
import json
from typing import Any

from aiohttp import web

from tests.functional.router.fakes import serve

PODS = "/api/v1/namespaces/apps/pods"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/apps/endpointslices"


def pod(name: str, ip: str | None = "10.0.0.1", **more: Any) -> dict[str, Any]:
    """A Pod as the API server gives it."""
    status = {"podIP": ip} if ip else {}
    return {"metadata": {"name": name, "uid": f"uid-{name}", **more.pop("metadata", {})}, "status": {**status, **more}}


def piece(**ready: bool) -> dict[str, Any]:
    """An EndpointSlice: pod name -> ready."""
    endpoints = [{"targetRef": {"uid": f"uid-{name}"}, "conditions": {"ready": value}} for name, value in ready.items()]
    return {"metadata": {"name": "s", "uid": "uid-s"}, "endpoints": endpoints}


class FakeApi:
    """Objects, their versions, and who watches."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, dict[str, Any]]] = {PODS: {}, SLICES: {}}
        self.version = 100
        self.lists = 0
        self.watches = 0
        self.selectors: set[str] = set()
        self.away = False  # every request fails
        self.gone: set[str] = set()  # paths whose next watch is told 410 Gone
        self.page = 500
        self._watchers: list[tuple[str, asyncio.Queue[dict[str, Any] | None]]] = []

    async def start(self, port: int = 0) -> str:
        """Serve; returns the address."""
        self.runner, self.port = await serve([web.get(path, self._get) for path in self.objects], port)
        return f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Be away altogether: no listener, no connection."""
        self.drop()
        await self.runner.cleanup()

    def put(self, path: str, thing: dict[str, Any], kind: str = "MODIFIED") -> None:
        """Change an object and tell the watchers."""
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        if kind == "DELETED":
            self.objects[path].pop(thing["metadata"]["uid"])
        else:
            self.objects[path][thing["metadata"]["uid"]] = thing
        self._tell(path, {"type": kind, "object": thing})

    def bookmark(self, path: str, version: int) -> None:
        """Send a bookmark."""
        self._tell(path, {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}})

    def fail(self, path: str, code: int) -> None:
        """Send an ERROR event."""
        self._tell(path, {"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "too old"}})

    def drop(self) -> None:
        """Cut every watch."""
        for _, queue in self._watchers:
            queue.put_nowait(None)

    def _tell(self, path: str, event: dict[str, Any]) -> None:
        for watched, queue in self._watchers:
            if watched == path:
                queue.put_nowait(event)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if self.away:
            return web.Response(status=503, text="away")
        self.selectors.add(request.query["labelSelector"])
        if "watch" in request.query:
            return await self._watch(request)
        self.lists += 1
        things = list(self.objects[request.path].values())
        begin = int(request.query.get("continue", 0))
        end = begin + self.page
        metadata = {"resourceVersion": str(self.version), "continue": str(end) if end < len(things) else ""}
        return web.json_response({"metadata": metadata, "items": things[begin:end]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        if request.path in self.gone:
            self.gone.remove(request.path)
            return web.json_response({"kind": "Status", "code": 410}, status=410)
        self.watches += 1
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        since = int(request.query["resourceVersion"])
        for thing in self.objects[request.path].values():
            if int(thing["metadata"]["resourceVersion"]) > since:
                queue.put_nowait({"type": "MODIFIED", "object": thing})
        self._watchers.append((request.path, queue))
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while (event := await queue.get()) is not None:
                await response.write(json.dumps(event).encode() + b"\n")
        finally:
            self._watchers.remove((request.path, queue))
        assert request.transport is not None
        request.transport.abort()
        return response
