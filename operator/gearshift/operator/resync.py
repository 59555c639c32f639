# SPDX-License-Identifier: Apache-2.0
"""Full listings: what a new leader starts from, and what finds the deletions that a broken watch did not tell of."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from gearshift.api import names
from gearshift.operator.index import Index
from gearshift.operator.kube import Kube
from gearshift.operator.resources import CHILD_KINDS, NODES, PODS, SERVICES_OF_INFERENCE, Resource

Json = dict[str, Any]
_OURS = f"{names.LABEL_MANAGED_BY}={names.FIELD_MANAGER}"


async def resync(kube: Kube, index: Index, namespaces: Sequence[str]) -> None:
    """Make the index equal to what the API server holds.

    Raises:
        KubeError: a listing failed; what was listed before it is in the index.
    """
    known = set(index.nodes)
    async for body in kube.list(NODES, None):
        index.put_node(body)
        known.discard(body["metadata"]["name"])
    for name in known:
        index.drop_node(name)
    index.lose_pods(await _unseen(index.pod_uids(), index.put_pod, _list(kube, PODS, namespaces, _OURS)))
    for resource in CHILD_KINDS:
        listing = _list(kube, resource, namespaces, _OURS)
        index.lose_children(await _unseen(index.child_uids(resource.kind), index.put_child, listing))
    services = _list(kube, SERVICES_OF_INFERENCE, namespaces, None)
    index.lose_services(await _unseen(set(index.services), index.put_service, services))


async def _unseen(known: set[str], put: Callable[[Json], None], listing: AsyncIterator[Json]) -> set[str]:
    """Put all of a listing into the index; the uids among those known before that it does not have."""
    async for body in listing:
        put(body)
        known.discard(body["metadata"]["uid"])
    return known


async def _list(kube: Kube, resource: Resource, namespaces: Sequence[str], labels: str | None) -> AsyncIterator[Json]:
    for namespace in namespaces or (None,):
        async for body in kube.list(resource, namespace, labels):
            yield body
