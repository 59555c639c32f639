# SPDX-License-Identifier: Apache-2.0
"""A model whose served name changes: pods of the old and of the new name side by side, until the last old one goes."""

import asyncio
from typing import Any

import aiohttp
import pytest

from gearshift.api.vocabulary import PodPhase, Role
from gearshift.router import fleet
from tests.functional.router.conftest import StartHouse
from tests.functional.router.fakes import MODEL, FakePod, House, until

OLD = "tiny-before"


async def ask(client: aiohttp.ClientSession, at: House, model: str) -> tuple[int, dict[str, Any]]:
    async with client.post(f"{at.url}/v1/completions", json={"model": model, "prompt": "x"}) as answer:
        return answer.status, await answer.json()


async def test_each_name_goes_to_the_pods_that_have_it(house: StartHouse, client: aiohttp.ClientSession) -> None:
    old, new = FakePod("old", model=OLD), FakePod("new")
    at = await house(old, new)
    for model in (OLD, MODEL, OLD):
        assert (await ask(client, at, model))[0] == 200
    assert [len(pod.sent) for pod in (old, new)] == [2, 1]
    async with client.get(f"{at.url}/v1/models") as answer:
        assert [card["id"] for card in (await answer.json())["data"]] == [MODEL, OLD]


async def test_the_two_steps_of_a_request_are_not_split_over_two_names(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    prefill, decode = FakePod("p", model=OLD, role=Role.PREFILL), FakePod("d", role=Role.DECODE)
    at = await house(prefill, decode)
    for model in (OLD, MODEL):
        assert (await ask(client, at, model))[0] == 200
    assert [[body["model"] for body in pod.sent] for pod in (prefill, decode)] == [[OLD], [MODEL]]


async def test_a_router_that_has_just_started_learns_the_old_name_from_its_pods(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    at, pod = await house(), FakePod("old", model=OLD)
    await pod.start()
    pod.silent = True
    at.source.publish([pod.endpoint])
    request = asyncio.create_task(ask(client, at, OLD))
    await until(lambda: pod.streams and b"gearshift_router_queue 1.0" in at.router.metrics.page())
    pod.silent = False
    pod.say(epoch=1)
    assert (await request)[0] == 200
    await pod.stop()


async def test_a_name_that_nobody_has_is_refused_when_every_pod_has_had_its_time(
    house: StartHouse, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "SETTLING_SECONDS", 0.1)
    at, pod = await house(), FakePod("old", model=OLD)
    await pod.start()
    pod.silent = True
    at.source.publish([pod.endpoint])
    status, body = await ask(client, at, OLD)
    assert (status, body["error"]["code"]) == (404, "model_not_found")
    await pod.stop()


async def test_who_waits_under_the_old_name_is_told_when_its_last_pod_goes(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    old, new = FakePod("old", model=OLD, admitting=False, phase=PodPhase.DRAINING), FakePod("new")
    at = await house(old, new)
    request = asyncio.create_task(ask(client, at, OLD))
    await until(lambda: b"gearshift_router_queue 1.0" in at.router.metrics.page())
    at.source.publish([new.endpoint])
    status, body = await request
    assert (status, body["error"]["code"]) == (404, "model_not_found")
