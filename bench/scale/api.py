# SPDX-License-Identifier: Apache-2.0
"""The least of a Kubernetes client that makes thousands of objects quickly: create, patch, delete, list and watch."""

import asyncio
import json
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import ClientPayloadError, ClientSession, ClientTimeout, TCPConnector

from gearshift.operator.resources import Resource

Json = dict[str, Any]
_AT_ONCE: Final = 24
_PAGE: Final = 500
_LINE_BYTES: Final = 8 * 1024 * 1024


class ApiError(Exception):
    """The API server refused."""


class Api:
    """A connection pool to one API server."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    @classmethod
    @asynccontextmanager
    async def connect(cls, config: Json) -> AsyncIterator["Api"]:
        """Connect as the user of a kubeconfig, given by its content; closed on exit."""
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        connector = TCPConnector(limit=0, ssl=ssl.create_default_context(cadata=authority))
        headers = {"authorization": f"Bearer {user['token']}"}
        timeout = ClientTimeout(total=None, connect=10)
        async with ClientSession(
            cluster["server"], connector=connector, headers=headers, timeout=timeout, read_bufsize=_LINE_BYTES
        ) as session:
            yield cls(session)

    async def call(self, method: str, path: str, body: Json | None = None, **options: Any) -> Json:
        """One request; the JSON answer.

        Raises:
            ApiError: with what the API server said.
        """
        async with self._session.request(method, path, json=body, **options) as response:
            answer: Json = await response.json()
            if response.status >= 400:
                raise ApiError(f"{method} {path}: {answer.get('message', answer)}")
            return answer

    async def create_all(self, objects: Iterable[tuple[Resource, Json]]) -> list[Json]:
        """Create objects, many at once; what the API server made of them, in their order."""
        turns = asyncio.Semaphore(_AT_ONCE)

        async def create(resource: Resource, body: Json) -> Json:
            async with turns:
                return await self.call("POST", resource.path(body["metadata"].get("namespace")), body)

        return list(await asyncio.gather(*(create(resource, body) for resource, body in objects)))

    async def patch_status(self, resource: Resource, namespace: str, name: str, status: Json) -> None:
        """Merge fields into the status of an object."""
        path = resource.path(namespace, name, "status")
        headers = {"content-type": "application/merge-patch+json"}
        await self.call("PATCH", path, {"status": status}, headers=headers)

    async def kill_pod(self, resource: Resource, namespace: str, name: str) -> None:
        """Delete an object without any grace."""
        await self.call("DELETE", resource.path(namespace, name), {"gracePeriodSeconds": 0})

    async def list_all(self, resource: Resource, labels: str = "") -> tuple[list[Json], str]:
        """All objects of the cluster in pages, and the version that a watch goes on from."""
        found: list[Json] = []
        params = {"limit": str(_PAGE), "labelSelector": labels}
        while True:
            page = await self.call("GET", resource.path(), params=params)
            found += page["items"]
            token = page["metadata"].get("continue")
            if not token:
                return found, page["metadata"]["resourceVersion"]
            params["continue"] = token

    async def any_that(self, resource: Resource, fields: str) -> bool:
        """Whether the cluster has an object that a field selector selects."""
        page = await self.call("GET", resource.path(), params={"limit": "1", "fieldSelector": fields})
        return bool(page["items"])

    async def follow(self, resource: Resource, labels: str = "") -> AsyncIterator[tuple[str, list[Json]]]:
        """All objects as ``LISTED``, then each change by its type, without end.

        The API server drops a watcher that is slow, as on a busy machine; then all objects come again.
        """
        while True:
            objects, version = await self.list_all(resource, labels)
            yield "LISTED", objects
            async for kind, body in self._watch(resource, version, labels):
                yield kind, [body]

    async def _watch(self, resource: Resource, version: str, labels: str) -> AsyncIterator[tuple[str, Json]]:
        params = {"watch": "true", "resourceVersion": version, "labelSelector": labels, "timeoutSeconds": "3600"}
        async with self._session.get(resource.path(), params=params) as response:
            try:
                async for line in response.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return
                    yield event["type"], event["object"]
            except ClientPayloadError:
                return
