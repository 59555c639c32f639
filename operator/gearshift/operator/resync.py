# SPDX-License-Identifier: Apache-2.0
"""Full listings: what a new leader starts from, and what finds the deletions that a broken watch did not tell of."""

import time
from collections.abc import Sequence

from gearshift.api import names
from gearshift.operator.index import Index, uids
from gearshift.operator.kube import Kube
from gearshift.operator.resources import CHILD_KINDS, NODES, PODS, SERVICES_OF_INFERENCE, Resource

_OURS = f"{names.LABEL_MANAGED_BY}={names.FIELD_MANAGER}"
_SKEW_SECONDS = 30.0  # between this machine's clock and the API server's


async def resync(kube: Kube, index: Index, namespaces: Sequence[str]) -> None:
    """Make the index equal to what the API server holds.

    Raises:
        KubeError: a listing failed; what was listed before it is in the index.
    """
    nodes = await kube.list(NODES, None)
    for body in nodes:
        index.put_node(body)
    index.keep_nodes({body["metadata"]["name"] for body in nodes})
    before = time.time() - _SKEW_SECONDS
    pods = await _list(kube, PODS, namespaces, _OURS)
    for body in pods:
        index.put_pod(body)
    index.keep_pods(uids(pods), before)
    for resource in CHILD_KINDS:
        children = await _list(kube, resource, namespaces, _OURS)
        for body in children:
            index.put_child(body)
        index.keep_children(uids(children), resource.kind)
    services = await _list(kube, SERVICES_OF_INFERENCE, namespaces, None)
    for body in services:
        index.put_service(body)
    index.keep_services(uids(services))


async def _list(
    kube: Kube, resource: Resource, namespaces: Sequence[str], labels: str | None
) -> list[dict[str, object]]:
    listings = [await kube.list(resource, namespace, labels) for namespace in namespaces or (None,)]
    return [body for listing in listings for body in listing]
