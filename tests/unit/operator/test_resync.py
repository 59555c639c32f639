# SPDX-License-Identifier: Apache-2.0
"""Full listings beside watches that run at the same time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from gearshift.operator.index import Index
from gearshift.operator.kube import Kube, Page
from gearshift.operator.manifests.disruption import build_budget
from gearshift.operator.resources import Resource
from gearshift.operator.resync import resync
from tests.unit.operator.builders import owner
from tests.unit.operator.test_index import ignore, live_pod, live_service


class Listings:
    """Lists what there was at a version, while watches tell of what came since."""

    def __init__(self, index: Index, version: int = 20) -> None:
        self._index = index
        self._version = version

    async def pages(
        self, resource: Resource, _namespace: str | None, _labels: str | None = None
    ) -> AsyncIterator[Page]:
        """Nothing of any kind was there; one object of each has come since."""
        match resource.kind:
            case "InferenceService":
                self._index.put_service(live_service("uid-1", 10))
            case "Pod":
                self._index.put_pod(live_pod())
            case "PodDisruptionBudget":
                self._index.put_child(live_budget())
            case "Node":
                self._index.put_node({"metadata": {"name": "n1", "resourceVersion": "10"}, "status": {}})
        yield Page(self._version, [])


def live_budget(version: int = 10) -> dict[str, Any]:
    """A child as the API server returns it."""
    body = build_budget(owner())
    return {**body, "metadata": {**body["metadata"], "uid": "child-1", "resourceVersion": str(version)}}


def known(index: Index) -> tuple[int, int, int, int]:
    """How many services, pods, children and nodes there are."""
    pods, children = (sum(len(each) for each in kind.values()) for kind in (index.pods, index.children))
    return len(index.services), pods, children, len(index.nodes)


def test_what_came_while_a_listing_was_on_its_way_stays() -> None:
    index = Index(ignore)
    asyncio.run(resync(cast("Kube", Listings(index)), index, ()))
    assert known(index) == (1, 1, 1, 1)


def test_what_a_listing_does_not_show_is_gone() -> None:
    index = Index(ignore)
    first = Listings(index)
    asyncio.run(resync(cast("Kube", first), index, ()))
    asyncio.run(resync(cast("Kube", Listings(Index(ignore))), index, ()))
    assert known(index) == (0, 0, 0, 0)


def test_what_is_newer_than_a_listing_stays() -> None:
    index = Index(ignore)
    asyncio.run(resync(cast("Kube", Listings(index)), index, ()))
    asyncio.run(resync(cast("Kube", Listings(Index(ignore), 9)), index, ()))
    assert known(index) == (1, 1, 1, 1)
