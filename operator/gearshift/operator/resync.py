# SPDX-License-Identifier: Apache-2.0
"""Full listings: what a new leader starts from, and what finds the deletions that a broken watch did not tell of."""

from collections.abc import Sequence

from gearshift.api import names
from gearshift.operator.index import Index, uids
from gearshift.operator.kube import Kube
from gearshift.operator.resources import CHILD_KINDS, NODES, PODS, SERVICES_OF_INFERENCE, Resource

_OURS = f"{names.LABEL_MANAGED_BY}={names.FIELD_MANAGER}"


async def resync(kube: Kube, index: Index, namespaces: Sequence[str]) -> None:
    """Make the index equal to what the API server holds.

    Raises:
        KubeError: a listing failed; what was listed before it is in the index.
    """
    await _nodes(kube, index)
    known = index.pod_uids()
    pods = await _list(kube, PODS, namespaces, _OURS)
    for body in pods:
        index.put_pod(body)
    index.lose_pods(known - uids(pods))
    for resource in CHILD_KINDS:
        known = index.child_uids(resource.kind)
        children = await _list(kube, resource, namespaces, _OURS)
        for body in children:
            index.put_child(body)
        index.lose_children(known - uids(children))
    known = set(index.services)
    services = await _list(kube, SERVICES_OF_INFERENCE, namespaces, None)
    for body in services:
        index.put_service(body)
    index.lose_services(known - uids(services))


async def _nodes(kube: Kube, index: Index) -> None:
    known = set(index.nodes)
    nodes = await kube.list(NODES, None)
    for body in nodes:
        index.put_node(body)
    for name in known - {body["metadata"]["name"] for body in nodes}:
        index.drop_node(name)


async def _list(
    kube: Kube, resource: Resource, namespaces: Sequence[str], labels: str | None
) -> list[dict[str, object]]:
    listings = [await kube.list(resource, namespace, labels) for namespace in namespaces or (None,)]
    return [body for listing in listings for body in listing]
