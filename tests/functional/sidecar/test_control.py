# SPDX-License-Identifier: Apache-2.0
"""The control API: who may what, which orders are refused and how, and the state stream."""

import asyncio
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from gearshift.api.wire import ControlError, PodState
from tests.functional.sidecar.conftest import MakeWorld, StartRouter
from tests.functional.sidecar.fake_kube import OPERATOR, ROUTER, STRANGER, token_of
from tests.functional.sidecar.world import TIMINGS, World

ORDER = {"id": "t1", "kind": "Layout", "to": "DP", "expectedEpoch": 0, "fencingToken": 1}
ACK = {"router": "r", "sequence": 1, "inFlight": 0}


@pytest.mark.parametrize(
    ("account", "method", "path", "body", "code"),
    [
        (OPERATOR, "GET", "/v1/state", None, 200),
        (OPERATOR, "GET", "/v1/transitions/none", None, 404),
        (OPERATOR, "POST", "/v1/acks", ACK, 204),
        (ROUTER, "GET", "/v1/state", None, 200),
        (ROUTER, "POST", "/v1/acks", ACK, 204),
        (ROUTER, "POST", "/v1/transitions", ORDER, 403),
        (ROUTER, "GET", "/v1/transitions/t1", None, 403),
        (STRANGER, "GET", "/v1/state", None, 403),
        (STRANGER, "POST", "/v1/transitions", ORDER, 403),
        (OPERATOR, "GET", "/v1/nothing", None, 404),
        (OPERATOR, "DELETE", "/v1/state", None, 405),
    ],
)
async def test_who_may_what(world: World, account: str, method: str, path: str, body: Any, code: int) -> None:
    status, answer = await world.call(method, path, body, account=account)
    assert status == code, answer
    if status >= 400:
        assert ControlError.model_validate(answer).message
    assert (await world.state()).epoch == 0


@pytest.mark.parametrize("token", ["", "nonsense", "a.b"])
async def test_a_caller_without_a_valid_token_learns_nothing(world: World, token: str) -> None:
    status, answer = await world.call("GET", "/v1/state", token=token)
    assert (status, answer["reason"]) == (401, "Unauthorized")


async def test_a_token_is_reviewed_once_a_minute_not_once_a_request(world: World) -> None:
    await world.state()
    before = world.kube.reviews
    for _ in range(20):
        await world.state()
    assert world.kube.reviews == before


async def test_confirmed_tokens_outlive_the_api_server_and_new_ones_do_not(world: World) -> None:
    await world.state()
    await world.kube.stop()
    assert (await world.ordered("DP")).result == "Committed"
    status, answer = await world.call("GET", "/v1/state", token=token_of(OPERATOR, 601.0))
    assert (status, answer["reason"]) == (503, "AuthUnavailable")


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"expectedEpoch": 3}, 409, "StaleEpoch"),
        ({"fencingToken": 4}, 409, "StaleFencingToken"),
        ({"to": "Sideways"}, 422, "NotCapable"),
        ({"to": "TP"}, 422, "NoChange"),
        ({"kind": "Role", "to": "Prefill"}, 422, "NotCapable"),
        ({"kind": "Colour"}, 400, "BadRequest"),
        ({"id": ""}, 400, "BadRequest"),
        ({"expectedEpoch": -1}, 400, "BadRequest"),
        ({"drainTimeout": "soon"}, 400, "BadRequest"),
        ({"drain": "Maybe"}, 400, "BadRequest"),
    ],
)
async def test_refused_orders_change_nothing(world: World, changes: dict[str, Any], code: int, reason: str) -> None:
    first = await world.ordered("DP", id_="t0", fencingToken=5)
    assert first.result == "Committed"
    assert (await world.ordered("TP", id_="t00", fencingToken=5)).result == "Committed"
    before = await world.state()
    body = {**ORDER, "id": "t2", "expectedEpoch": 2, "fencingToken": 5, **changes}
    status, answer = await world.call("POST", "/v1/transitions", body)
    assert (status, answer["reason"]) == (code, reason)
    if code == 409:
        assert (answer["epoch"], answer["fencingToken"]) == (2, 5)
    after = await world.state()
    assert (after.sequence, after.epoch, after.phase) == (before.sequence, 2, "Serving")


async def test_a_newer_leader_is_remembered_even_when_its_order_is_refused(world: World) -> None:
    status, _ = await world.call("POST", "/v1/transitions", {**ORDER, "fencingToken": 8, "to": "Mesh"})
    assert status == 422
    assert (await world.state()).fencing_token == 8
    status, answer = await world.call("POST", "/v1/transitions", {**ORDER, "id": "t2"})
    assert (status, answer["reason"], answer["fencingToken"]) == (409, "StaleFencingToken", 8)


async def test_the_same_order_twice_is_carried_out_once(world: World) -> None:
    world.conduct().running = 1
    first = await world.call("POST", "/v1/transitions", ORDER)
    again = await world.call("POST", "/v1/transitions", ORDER)
    assert (first[0], again[0]) == (202, 202)
    other = await world.call("POST", "/v1/transitions", {**ORDER, "id": "t2"})
    assert (other[0], other[1]["reason"]) == (409, "TransitionInFlight")
    world.conduct().running = 0
    await world.finished()
    third = await world.call("POST", "/v1/transitions", ORDER)
    assert (third[0], third[1]["result"]) == (202, "Committed")
    assert (await world.state()).epoch == 1


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"id": 1}'])
async def test_bodies_that_are_no_orders(world: World, body: bytes) -> None:
    url = f"http://127.0.0.1:{world.settings.ports.control}/v1/transitions"
    headers = {"Authorization": f"Bearer {token_of(OPERATOR)}"}
    async with world.session.post(url, data=body, headers=headers) as response:
        answer = await response.json()
        assert (response.status, answer["reason"]) == (400, "BadRequest")
        assert answer["message"]


async def test_a_body_over_the_limit_is_not_read(world: World) -> None:
    status, answer = await world.call("POST", "/v1/transitions", {**ORDER, "id": "x" * 70_000})
    assert (status, answer["reason"]) == (413, "BadRequest")


async def test_the_stream_tells_of_load_while_it_changes_and_beats_when_it_does_not(
    world: World, start_router: StartRouter
) -> None:
    router = await start_router(world)
    world.conduct().running = 3
    await world.until(lambda: router.states[-1].load.running == 3)
    count = len(router.states)
    await world.until(lambda: len(router.states) >= count + 2)
    assert router.states[-1].load.running == 3
    assert len({state.sequence for state in router.states}) == 1


async def test_a_reader_that_does_not_keep_pace_is_cut_off(make_world: MakeWorld) -> None:
    world = await make_world(timings=replace(TIMINGS, beat=0.0)).start()
    reader, writer = await asyncio.open_connection("127.0.0.1", world.settings.ports.control, limit=1024)
    request = (
        f"GET /v1/state/stream?router=slow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token_of(ROUTER)}\r\n\r\n"
    )
    writer.write(request.encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")

    async def connected() -> str:
        _, text = await world.probe("/metrics")
        return next(line for line in text.splitlines() if line.startswith("gearshift_sidecar_routers_connected"))

    async def cut() -> bool:
        return (await connected()).endswith(" 0.0")

    assert (await connected()).endswith(" 1.0")
    await world.until(cut)
    writer.close()


async def test_a_stream_that_is_closed_is_forgotten(world: World, start_router: StartRouter) -> None:
    router = await start_router(world)
    await router.stop()

    async def gone() -> bool:
        return "gearshift_sidecar_routers_connected 0.0" in (await world.probe("/metrics"))[1]

    await world.until(gone)


async def test_a_stream_without_a_name_watches_and_blocks_nothing(world: World) -> None:
    url = f"http://127.0.0.1:{world.settings.ports.control}/v1/state/stream"
    headers = {"Authorization": f"Bearer {token_of(OPERATOR)}"}
    limit = aiohttp.ClientTimeout(total=None)
    async with world.session.get(url, headers=headers, timeout=limit) as response:
        assert PodState.model_validate_json(await response.content.readline()).phase == "Serving"
        assert (await world.ordered("DP")).result == "Committed"


async def test_metrics_tell_of_transitions(world: World) -> None:
    assert (await world.ordered("DP")).result == "Committed"
    status, text = await world.probe("/metrics")
    assert status == 200
    lines = set(text.splitlines())
    assert 'gearshift_sidecar_transitions_total{kind="Layout",result="Committed",to="DP"} 1.0' in lines
    assert 'gearshift_sidecar_transition_duration_seconds_count{kind="Layout",result="Committed"} 1.0' in lines
    assert 'gearshift_sidecar_phase{phase="Serving"} 1.0' in lines
    assert 'gearshift_sidecar_phase{phase="Draining"} 0.0' in lines
    assert 'gearshift_sidecar_layout{layout="DP"} 1.0' in lines
    assert "gearshift_sidecar_epoch 1.0" in lines
    assert 'gearshift_sidecar_phase_duration_seconds_count{kind="Layout",phase="Verifying"} 1.0' in lines
    assert 'gearshift_sidecar_probe_seconds_count{engine="sim"} 2.0' in lines
