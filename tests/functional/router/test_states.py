# SPDX-License-Identifier: Apache-2.0
"""The conversation with sidecars: what is acknowledged when, and how a router goes on when sidecars or the endpoint
source fall silent.
"""

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gearshift.api.vocabulary import Role
from gearshift.router import fleet, tokens
from gearshift.scheduling.choose import Trust
from tests.functional.router.conftest import StartHouse
from tests.functional.router.fakes import MODEL, FakePod, until

GOOD = {"model": MODEL, "prompt": "x"}


class Gate:
    """Engine that answers when told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def __call__(self, _request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        await self.go.wait()
        return web.json_response({})


async def test_each_new_sequence_is_acknowledged_and_load_is_not(house: StartHouse) -> None:
    pod = FakePod("a")
    at = await house(pod)
    pod.say_load(5)
    await until(lambda: at.router.fleet.pods["uid-a"].reported == 5)
    pod.say(epoch=1)
    await until(lambda: pod.acknowledged(0))
    assert pod.acks == [
        {"router": "router-1", "sequence": 1, "inFlight": 0},
        {"router": "router-1", "sequence": 2, "inFlight": 0},
    ]


async def test_a_draining_pod_hears_how_many_requests_it_still_owes(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    gate = Gate()
    pod, other = FakePod("a", gate), FakePod("b")
    at = await house(pod, other)
    other.say_load(99)
    await until(lambda: at.router.fleet.pods["uid-b"].reported == 99)
    requests = [asyncio.create_task(client.post(f"{at.url}/v1/completions", json=GOOD)) for _ in range(2)]
    await until(lambda: len(pod.sent) == 2)
    pod.say(admitting=False)
    await until(lambda: pod.acknowledged(2))
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert answer.status == 200
    assert (len(pod.sent), len(other.sent)) == (2, 1)
    gate.go.set()
    await asyncio.gather(*requests)
    await until(lambda: pod.acknowledged(0))


async def test_a_refused_acknowledgement_is_repeated(house: StartHouse) -> None:
    pod = FakePod("a")
    await house(pod)
    pod.refuse_acks = True
    pod.say(epoch=1)
    pod.refuse_acks = False
    await until(lambda: pod.acknowledged(0))


async def test_a_token_renewed_just_before_the_api_server_went_away_gives_way_to_the_one_before(
    house: StartHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sidecars know the old one, which is valid still, and can ask nobody about the new one."""
    pod, other = FakePod("a"), FakePod("b")
    at = await house(pod, other)
    monkeypatch.setattr(tokens, "REREAD_SECONDS", 0.0)
    at.router.token.path.write_text("renewed")
    for each in (pod, other):
        each.unsure_of.add("renewed")
        each.say(epoch=1)
    await until(lambda: pod.acknowledged(0) and other.acknowledged(0))
    opened = pod.opened
    await pod.stop_sidecar()
    await pod.start_sidecar()
    await until(lambda: pod.opened > opened)


async def test_a_defect_in_following_a_pod_ends_the_router(house: StartHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone it would leave the pod's last state in use for ever."""
    pod = FakePod("a")
    at = await house(pod)

    def broken(*_: object) -> bool:
        raise RuntimeError("a defect")

    monkeypatch.setattr(at.router.fleet, "apply", broken)
    pod.say(epoch=1)
    async with asyncio.timeout(5):
        with pytest.raises(ExceptionGroup) as failure:
            await at.router.failed()
    assert failure.group_contains(RuntimeError, match="a defect")


async def test_without_its_sidecar_a_pod_goes_on_serving(house: StartHouse, client: aiohttp.ClientSession) -> None:
    pod = FakePod("a")
    at = await house(pod)
    await pod.stop_sidecar()
    await until(lambda: not at.router.fleet.pods["uid-a"].live)
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert answer.status == 200
    pod.acks.clear()
    await pod.start_sidecar()
    await until(lambda: pod.acknowledged(0))
    assert at.router.fleet.pods["uid-a"].live


async def test_a_pod_with_a_live_stream_comes_before_one_without(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    silent, live = FakePod("silent"), FakePod("live")
    at = await house(silent, live)
    live.say_load(50)
    await until(lambda: at.router.fleet.pods["uid-live"].reported == 50)
    await silent.stop_sidecar()
    await until(lambda: not at.router.fleet.pods["uid-silent"].live)
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert answer.status == 200
    assert (len(silent.sent), len(live.sent)) == (0, 1)


async def test_a_request_is_not_split_with_a_pod_that_is_unheard_for_long(
    house: StartHouse, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sidecar may have changed its role or layout, and waits for this router's word no more."""
    monkeypatch.setattr(fleet, "HEARD_SECONDS", 0.05)
    prefill, decode = FakePod("p", role=Role.PREFILL), FakePod("d", role=Role.DECODE)
    at = await house(prefill, decode)
    await decode.stop_sidecar()
    await until(lambda: at.router.fleet.serving(MODEL) == [at.router.fleet.pods["uid-p"]])
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert answer.status == 200
    assert (prefill.sent, decode.sent) == ([GOOD], [])


async def test_pods_that_are_all_unheard_for_long_go_on_serving(
    house: StartHouse, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "HEARD_SECONDS", 0.05)
    pods = [FakePod("a"), FakePod("b")]
    at = await house(*pods)
    for pod in pods:
        await pod.stop_sidecar()
    await until(lambda: all(pod.trust is Trust.UNHEARD for pod in at.router.fleet.pods.values()))
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert answer.status == 200


async def test_the_state_of_another_pod_at_the_same_address_is_not_believed(house: StartHouse) -> None:
    pod = FakePod("a")
    at = await house(pod)
    before = pod.opened
    pod.say(uid="uid-stranger", role="Decode")
    await until(lambda: pod.opened > before)
    fleet_pod = at.router.fleet.pods["uid-a"]
    assert (fleet_pod.live, fleet_pod.role) == (False, "Unified")


async def test_the_active_engine_may_move_to_another_port(house: StartHouse, client: aiohttp.ClientSession) -> None:
    pod, spare = FakePod("a"), FakePod("b")
    at = await house(pod)
    await spare.start()
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert answer.status == 200
    pod.say(engine_port=spare.state.engine_port)
    await until(lambda: pod.acknowledged(0))
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert answer.status == 200
    assert (len(pod.sent), len(spare.sent)) == (1, 1)
    await spare.stop()


async def test_pods_come_and_go_with_the_endpoints(house: StartHouse, client: aiohttp.ClientSession) -> None:
    old, new = FakePod("old"), FakePod("new")
    at = await house(old)
    await new.start()
    at.source.publish([new.endpoint])
    await until(lambda: new.acks and not old.streams)
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert answer.status == 200
    assert (len(old.sent), len(new.sent)) == (0, 1)
    await new.stop()


async def test_a_terminating_pod_gets_nothing_new_and_keeps_its_requests(
    house: StartHouse, client: aiohttp.ClientSession
) -> None:
    gate = Gate()
    pod = FakePod("a", gate)
    at = await house(pod, queueTimeout="50ms")
    request = asyncio.create_task(client.post(f"{at.url}/v1/completions", json=GOOD))
    await until(lambda: pod.sent)
    at.source.publish([type(pod.endpoint)("a", "uid-a", "127.0.0.1", terminating=True, control_port=pod.control_port)])
    async with client.post(f"{at.url}/v1/completions", json=GOOD) as answer:
        assert answer.status == 503
        assert "1 Terminating" in (await answer.json())["error"]["message"]
    gate.go.set()
    assert (await request).status == 200


async def test_a_router_that_stops_finishes_what_it_holds(house: StartHouse, client: aiohttp.ClientSession) -> None:
    gate = Gate()
    pod = FakePod("a", gate)
    at = await house(pod)
    request = asyncio.create_task(client.post(f"{at.url}/v1/completions", json=GOOD))
    await until(lambda: pod.sent)
    stopping = asyncio.create_task(at.router.stop(5.0, 0.0))
    await until(lambda: not at.router._data.sites)
    gate.go.set()
    answer = await request
    assert answer.status == 200
    assert answer.headers["Connection"] == "close"
    await stopping
