# SPDX-License-Identifier: Apache-2.0
"""Endpoints from the API server, through every fault of a watch: the router's list is right again after it, and never
emptied by it.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from aiohttp import ClientTimeout

from gearshift.api.routerconfig import RouterConfig
from gearshift.router import kube
from gearshift.router.endpoints import Endpoint
from gearshift.router.kubeaccess import KubeAccess
from gearshift.router.kubeendpoints import KubeEndpoints
from tests.functional.router.fakeapi import PODS, SLICES, FakeApi, piece, pod
from tests.functional.router.fakes import until


class Followed:
    """An API server and what a router makes of it."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.published: list[Sequence[Endpoint]] = []

    async def run(self, server: str) -> None:
        config = RouterConfig(namespace="apps", service="chat", service_uid="u1", model="tiny")
        await KubeEndpoints(config, KubeAccess(server)).run(self.published.append)

    @property
    def names(self) -> list[str]:
        return sorted(endpoint.name for endpoint in self.published[-1]) if self.published else []


@pytest_asyncio.fixture
async def followed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Followed]:
    """A source that follows two pods."""
    monkeypatch.setattr(kube, "RETRY_SECONDS", (0.01, 0.02))
    api = FakeApi()
    api.put(PODS, pod("a"))
    api.put(PODS, pod("b", "10.0.0.2"))
    api.put(SLICES, piece(a=True, b=False))
    made = Followed(api)
    task = asyncio.create_task(made.run(await api.start()))
    await until(lambda: made.names == ["a", "b"] and api.watches >= 2)
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await api.stop()


async def test_pods_and_slices_are_merged(followed: Followed) -> None:
    await until(lambda: {endpoint.ready for endpoint in followed.published[-1]} == {True, False})
    assert followed.api.selectors == {"gearshift.dev/service-uid=u1", "kubernetes.io/service-name=chat-pods"}


async def test_changes_arrive(followed: Followed) -> None:
    followed.api.put(PODS, pod("c", "10.0.0.3"), "ADDED")
    await until(lambda: followed.names == ["a", "b", "c"])
    followed.api.put(PODS, pod("a"), "DELETED")
    await until(lambda: followed.names == ["b", "c"])


async def test_a_dropped_watch_resumes_without_a_new_list(followed: Followed) -> None:
    lists = followed.api.lists
    followed.api.drop()
    followed.api.put(PODS, pod("c", "10.0.0.3"))
    await until(lambda: followed.names == ["a", "b", "c"])
    assert followed.api.lists == lists


async def test_a_bookmark_moves_the_place_to_resume_from(followed: Followed) -> None:
    followed.api.bookmark(PODS, 5000)
    followed.api.put(SLICES, piece(a=True, b=True))
    await until(lambda: all(endpoint.ready for endpoint in followed.published[-1]))
    watches = followed.api.watches
    followed.api.drop()
    await until(lambda: followed.api.watches >= watches + 2)
    followed.api.version = 6000
    followed.api.put(PODS, pod("c", "10.0.0.3"))
    await until(lambda: followed.names == ["a", "b", "c"])


async def test_an_api_server_that_was_restored_to_an_older_state_is_listed_anew(followed: Followed) -> None:
    """It answers 504 to a watch from a version that it has not reached."""
    lists = followed.api.lists
    followed.api.fail(PODS, 504)
    await until(lambda: followed.api.lists > lists)


@pytest.mark.parametrize("how", ["status", "event"])
async def test_gone_means_a_new_list(followed: Followed, how: str) -> None:
    del followed.api.objects[PODS]["uid-a"]  # deleted in the time that nobody remembers
    if how == "status":
        followed.api.gone.add(PODS)
        followed.api.drop()
    else:
        followed.api.fail(PODS, 410)
    await until(lambda: followed.names == ["b"])


async def test_an_api_server_that_is_away_changes_nothing(followed: Followed) -> None:
    api, published = followed.api, len(followed.published)
    await api.stop()
    refused = asyncio.Event()

    async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        refused.set()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", api.port)
    await refused.wait()
    server.close()
    assert (followed.names, len(followed.published)) == (["a", "b"], published)
    api.put(PODS, pod("c", "10.0.0.3"))
    await api.start(api.port)
    await until(lambda: followed.names == ["a", "b", "c"])


async def test_an_api_server_that_fails_changes_nothing(followed: Followed) -> None:
    followed.api.away = True
    followed.api.drop()
    followed.api.put(PODS, pod("c", "10.0.0.3"))
    followed.api.away = False
    await until(lambda: followed.names == ["a", "b", "c"])


async def test_a_silent_watch_is_opened_again(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube, "WATCH_TIMEOUT", ClientTimeout(total=None, sock_read=0.05))
    watches = followed.api.watches
    followed.api.drop()
    await until(lambda: followed.api.watches >= watches + 6)
    assert followed.names == ["a", "b"]


async def test_long_lists_come_in_pages(followed: Followed) -> None:
    followed.api.page = 2
    for number in range(5):
        followed.api.objects[PODS][f"uid-p{number}"] = pod(
            f"p{number}", f"10.0.1.{number}", metadata={"resourceVersion": "1"}
        )
    followed.api.fail(PODS, 410)
    await until(lambda: len(followed.names) == 7)
