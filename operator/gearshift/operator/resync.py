# SPDX-License-Identifier: Apache-2.0
"""Full listings: what a new leader starts from, and what finds the deletions that a broken watch did not tell of."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from gearshift.api import names
from gearshift.operator.index import Index
from gearshift.operator.kube import Kube, Page
from gearshift.operator.records import version_of
from gearshift.operator.resources import CHILD_KINDS, NODES, PODS, SERVICES_OF_INFERENCE, Resource

Json = dict[str, Any]
_OURS = f"{names.LABEL_MANAGED_BY}={names.FIELD_MANAGER}"


async def resync(kube: Kube, index: Index, namespaces: Sequence[str]) -> None:
    """Make the index equal to what the API server holds.

    A listing may be older than what is known already, by a server that lags: it takes away only what it is newer than.

    Raises:
        KubeError: a listing failed; what was listed before it is in the index.
    """
    kinds = (_children(kube, index, namespaces, resource) for resource in CHILD_KINDS)
    done = await asyncio.gather(
        _nodes(kube, index), _pods(kube, index, namespaces), *kinds, return_exceptions=True
    )  # side by side: at the start of a process the watches list, too, and each wait is one for them
    for problem in done:
        if problem is not None:
            raise problem
    known = {uid: version_of(body) for uid, body in index.services.items()}
    services = _pages(kube, SERVICES_OF_INFERENCE, namespaces, None)
    index.lose_services(await _unseen(known, index.put_service, services))  # last, for what it takes along


async def _nodes(kube: Kube, index: Index) -> None:
    known = {name: record.version for name, record in index.nodes.items()}
    for name in await _unseen(known, index.put_node, kube.pages(NODES, None), "name"):
        index.drop_node(name)


async def _pods(kube: Kube, index: Index, namespaces: Sequence[str]) -> None:
    known = {pod.uid: pod.version for pods in index.pods.values() for pod in pods.values()}
    index.lose_pods(await _unseen(known, index.put_pod, _pages(kube, PODS, namespaces, _OURS)))


async def _children(kube: Kube, index: Index, namespaces: Sequence[str], resource: Resource) -> None:
    children = (child for children in index.children.values() for child in children.values())
    known = {child.uid: child.version for child in children if child.kind == resource.kind}
    index.lose_children(await _unseen(known, index.put_child, _pages(kube, resource, namespaces, _OURS)))


async def _unseen(
    known: dict[str, int], put: Callable[[Json], None], listing: AsyncIterator[Page], key: str = "uid"
) -> set[str]:
    """Put all of a listing into the index; the keys of ``known``, a map to versions, that it shows to be gone."""
    listed_at: int | None = None
    async for page in listing:
        listed_at = page.version if listed_at is None else min(listed_at, page.version)
        for body in page.items:
            put(body)
            known.pop(body["metadata"][key], None)
    return {name for name, version in known.items() if listed_at is not None and version <= listed_at}


async def _pages(kube: Kube, resource: Resource, namespaces: Sequence[str], labels: str | None) -> AsyncIterator[Page]:
    for namespace in namespaces or (None,):
        async for page in kube.pages(resource, namespace, labels):
            yield page
