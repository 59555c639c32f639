# SPDX-License-Identifier: Apache-2.0
"""Children are brought to what is wanted, whatever happens to them, and left alone while they are so."""

import asyncio
import copy
from typing import Any, cast

import pytest

from gearshift.operator.children import Children
from gearshift.operator.errors import NotFound
from gearshift.operator.index import Index
from gearshift.operator.kube import Kube
from gearshift.operator.manifests.meta import Owner
from tests.unit.operator.builders import INSTALLATION, owner
from tests.unit.operator.test_index import ignore

Json = dict[str, Any]


class Server:
    """Takes whatever is applied, and counts."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], Json] = {}
        self.writes = 0

    async def get(self, resource: Any, _namespace: str, name: str) -> Json:
        """An object."""
        if (resource.kind, name) not in self.held:
            raise NotFound("GET", name, 404)
        return self.held[resource.kind, name]

    async def apply(self, _resource: Any, manifest: Json) -> Json:
        """Take an object."""
        self.writes += 1
        body = copy.deepcopy(manifest)
        body["metadata"] |= {"uid": f"child-{self.writes}", "resourceVersion": str(self.writes)}
        self.held[body["kind"], body["metadata"]["name"]] = body
        return body


class World:
    """A server, an index that knows what it holds, and one service."""

    def __init__(self) -> None:
        self.server = Server()
        self.index = Index(ignore)
        self.children = Children(cast("Kube", self.server), self.index, INSTALLATION)

    def keep(self, owned: Owner, pods: int | None = None) -> int:
        """One look; the number of writes."""
        before = self.server.writes
        assert asyncio.run(self.children.keep(owned, pods)) is None
        return self.server.writes - before

    def change(self, kind: str, name: str, **spec: Any) -> None:
        """Somebody changes a child."""
        self.server.writes += 1
        body = copy.deepcopy(self.server.held[kind, name])
        body["metadata"]["resourceVersion"] = str(self.server.writes)
        body["spec"] |= spec
        self.index.put_child(body)


@pytest.fixture
def world() -> World:
    """With all children made."""
    one = World()
    assert one.keep(OWNED) == 9
    return one


OWNED = owner(replicas=3)


def test_what_is_as_it_should_be_is_not_written(world: World) -> None:
    assert [world.keep(OWNED), world.keep(OWNED), world.keep(owner(replicas=3))] == [0, 0, 0]


def test_another_spec_or_number_of_pods_is_seen(world: World) -> None:
    assert [world.keep(OWNED), world.keep(OWNED, 6), world.keep(OWNED, 6), world.keep(OWNED)] == [0, 1, 0, 1]
    assert world.keep(owner(replicas=5)) == 1
    assert world.server.held["PodDisruptionBudget", "chat"]["spec"]["minAvailable"] == 4


def test_a_change_by_another_hand_is_undone(world: World) -> None:
    world.keep(OWNED)
    world.change("PodDisruptionBudget", "chat", minAvailable=0)
    assert [world.keep(OWNED), world.keep(OWNED)] == [1, 0]


def test_a_child_that_is_gone_is_made_again(world: World) -> None:
    world.keep(OWNED)
    world.index.drop_child(world.server.held.pop(("NetworkPolicy", "chat")))
    assert [world.keep(OWNED), world.keep(OWNED)] == [1, 0]
