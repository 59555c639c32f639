# SPDX-License-Identifier: Apache-2.0
"""The router's whole use of the Kubernetes API: list and watch, on plain aiohttp.

Two watches of a few fields are all that a router needs, and it already has aiohttp: the official client would cost
every router 81 MB of memory and 2.5 s of start for that, and decodes ten times slower. What a watch must survive is
kept here: a dropped or silent connection, 410 Gone, and an API server that is away for as long as it likes, through
which the last known objects stay in use.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final

from aiohttp import ClientError, ClientSession, ClientTimeout

from gearshift.router.kubeaccess import KubeAccess

log = logging.getLogger(__name__)

Object = dict[str, Any]

LIST_TIMEOUT: Final = ClientTimeout(total=30, sock_connect=5)
WATCH_SECONDS: Final = 240  # the server ends a watch after this long
SILENCE_SECONDS: Final = 80.0  # bookmarks come about once a minute: this much silence means a dead connection
WATCH_TIMEOUT: Final = ClientTimeout(total=WATCH_SECONDS + 60, sock_connect=5, sock_read=SILENCE_SECONDS)
RETRY_SECONDS: Final = (0.2, 10.0)  # first and longest pause before the API server is asked again
PAGE: Final = 500  # objects of one list answer
TO_LIST_ANEW: Final = frozenset({410, 504})
"""Codes of versions that can't be watched from: forgotten, or not reached by a server restored to an older state."""
LINE_BYTES: Final = 4 * 1024 * 1024  # longest watch event: etcd holds no object above 1.5 MiB


class KubeError(Exception):
    """The API server answered with a failure."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code} {message}")
        self.code = code


class Reflector:
    """Keeps ``objects`` equal to one list of the API server for as long as `run` runs.

    Args:
        session: client session; made with ``read_bufsize=LINE_BYTES``, since a watch event is one line.
        path: list path, such as ``/api/v1/namespaces/default/pods``.
        selector: label selector.
        changed: called after every change of ``objects``.
    """

    def __init__(
        self, session: ClientSession, access: KubeAccess, path: str, selector: str, changed: Callable[[], None]
    ) -> None:
        self.objects: dict[str, Object] = {}  # by uid
        self.listed = False  # the list was read at least once
        self._session = session
        self._access = access
        self._path = path
        self._selector = selector
        self._changed = changed
        self._version = ""  # resource version to watch from; empty: list first

    async def run(self) -> None:
        """List, watch, and do so again, until cancelled. A failure changes nothing but the time of the next attempt."""
        pause, longest = RETRY_SECONDS
        said = ""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                pause, said, reason = RETRY_SECONDS[0], "", ""  # a watch ends now and then, and is resumed
            except KubeError as error:
                reason = str(error)
                if error.code in TO_LIST_ANEW:
                    self._version = ""
            except (ClientError, OSError, TimeoutError, ValueError, TypeError, KeyError) as error:
                reason = str(error) or repr(error)
            if reason != said:
                log.warning("watch of %s: %s; going on with the %d known", self._path, reason, len(self.objects))
                said = reason
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads the load, hides nothing
            pause = min(pause * 2, longest)

    async def _list(self) -> None:
        objects: dict[str, Object] = {}
        page = ""
        while True:
            answer = await self._page(page)
            for item in answer["items"]:
                objects[item["metadata"]["uid"]] = item
            page = answer["metadata"].get("continue") or ""
            if not page:
                break
        self._version = answer["metadata"]["resourceVersion"]
        self.objects, self.listed = objects, True
        self._changed()

    async def _page(self, page: str) -> Object:
        query = {"labelSelector": self._selector, "limit": str(PAGE), **({"continue": page} if page else {})}
        async with self._session.get(
            self._access.server + self._path,
            params=query,
            headers=self._access.headers(),
            ssl=self._access.tls or True,
            timeout=LIST_TIMEOUT,
        ) as answer:
            if answer.status != 200:
                raise self._error(answer.status, await answer.text())
            document: Object = json.loads(await answer.read())
            return document

    async def _watch(self) -> None:
        async with aclosing(self._events()) as events:
            async for event in events:
                self._take(event["type"], event["object"])

    def _take(self, kind: str, thing: Object) -> None:
        if kind == "ERROR":
            raise KubeError(int(thing.get("code", 500)), str(thing.get("message", "")))
        metadata = thing["metadata"]
        self._version = metadata["resourceVersion"]
        if kind == "BOOKMARK":
            return
        if kind == "DELETED":
            self.objects.pop(metadata["uid"], None)
        else:
            self.objects[metadata["uid"]] = thing
        self._changed()

    async def _events(self) -> AsyncGenerator[Object, None]:
        query = {
            "labelSelector": self._selector,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        async with self._session.get(
            self._access.server + self._path,
            params=query,
            headers=self._access.headers(),
            ssl=self._access.tls or True,
            timeout=WATCH_TIMEOUT,
        ) as answer:
            if answer.status != 200:
                raise self._error(answer.status, await answer.text())
            async for line in answer.content:
                yield json.loads(line)

    def _error(self, status: int, text: str) -> KubeError:
        if status == 401 and self._access.token is not None:
            self._access.token.expire()
        return KubeError(status, text[:200])
