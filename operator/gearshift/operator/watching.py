# SPDX-License-Identifier: Apache-2.0
"""kopf watches; it decides nothing and writes nothing.

Only event handlers are registered, so kopf puts no finalizer and no annotation on any object. Election is a Lease of
our own (`gearshift.operator.lease`): kopf's peering freezes on equal priorities and takes over in a minute.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Iterator
from functools import partial
from typing import Any, Final

import kopf

from gearshift.api import names
from gearshift.operator.index import Index
from gearshift.operator.records import pod_record
from gearshift.operator.resources import CHILD_KINDS, NODES, PODS, SERVICES_OF_INFERENCE, Resource

_OURS: Final = f"{names.LABEL_MANAGED_BY}={names.FIELD_MANAGER}"


class _NoEssence(kopf.DiffBaseStorage):
    """Spares the copy of every object that kopf compares with the next version; nobody here asks what differs."""

    def build(self, *, body: Any, extra_fields: Any = None) -> Any:
        del body, extra_fields
        return {}

    def fetch(self, *, body: Any) -> None:
        del body

    def store(self, *, body: Any, patch: Any, essence: Any) -> None:
        del body, patch, essence


class Backoffs:
    """Endless pauses for kopf's retries: short, with jitter, and never giving up, for outages of any length."""

    def __iter__(self) -> Iterator[float]:
        pause = 0.5
        while True:
            yield pause * random.uniform(0.5, 1.5)  # noqa: S311 - jitter
            pause = min(pause * 2, 8.0)


def watch_settings() -> kopf.OperatorSettings:
    """Settings under which kopf only watches."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.persistence.finalizer = f"{names.GROUP}/unused"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=names.GROUP)
    settings.persistence.diffbase_storage = _NoEssence()
    settings.watching.server_timeout = 600
    settings.watching.client_timeout = 660
    settings.watching.connect_timeout = 10
    settings.watching.chunk_size = 100  # a pod is some 10 kB of JSON, and several times of that in memory
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 5
    settings.networking.error_backoffs = Backoffs()
    settings.queueing.error_delays = Backoffs()
    settings.queueing.idle_timeout = 0.01  # until then a worker, one an object, holds the whole object
    for resource in (PODS, *CHILD_KINDS):
        settings.watching.label_selectors[resource.group, resource.version, resource.plural] = _OURS
    return settings


def registry(
    index: Index, login: Callable[[], Awaitable[dict[str, Any]]], relisted: Callable[[], None]
) -> kopf.OperatorRegistry:
    """Handlers that feed the index. ``login`` gives arguments of ``kopf.ConnectionInfo``, anew when refused.

    ``relisted`` is called when kopf begins a watch anew, for which it does not tell what went away in between.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(**await login())

    feed = partial(_feed, handlers, relisted)
    feed(SERVICES_OF_INFERENCE, index.put_service, index.drop_service)
    feed(PODS, index.put_pod, lambda body: drop_pod(index, body))
    feed(NODES, index.put_node, lambda body: index.drop_node(body["metadata"]["name"]))
    for resource in CHILD_KINDS:
        feed(resource, index.put_child, index.drop_child)
    return handlers


async def first_end(tasks: Collection[asyncio.Task[Any]]) -> BaseException | None:
    """Wait until one of kopf's tasks ends, and end the others; what it ended with.

    ``kopf.run_tasks`` would end every other task of the process, too.
    """
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=5.0)
    return next((task.exception() for task in done if not task.cancelled() and task.exception()), None)


def drop_pod(index: Index, body: dict[str, Any]) -> None:
    """Take a deleted pod out of the index."""
    record = pod_record(body)
    if record is not None:
        index.drop_pod(record.service_uid, record.name, record.uid)


def _feed(
    handlers: kopf.OperatorRegistry,
    relisted: Callable[[], None],
    resource: Resource,
    put: Callable[[dict[str, Any]], None],
    drop: Callable[[dict[str, Any]], None],
) -> None:
    defaults = {"apiVersion": resource.api_version, "kind": resource.kind}
    told: set[str] = set()  # uids; one that is listed although it was told of before means another listing

    @kopf.on.event(resource.group, resource.version, resource.plural, registry=handlers, id=f"watch-{resource.plural}")
    async def on_event(event: Any, **_: Any) -> None:
        body = {**defaults, **event["object"]}
        uid = body["metadata"]["uid"]
        if event["type"] == "DELETED":
            told.discard(uid)
            drop(body)
            return
        if event["type"] is None and uid in told:
            relisted()
        told.add(uid)
        put(body)
