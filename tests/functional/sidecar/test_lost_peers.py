# SPDX-License-Identifier: Apache-2.0
"""Peers that are gone or never finish a request: neither drains nor connections may last as long as TCP lets them."""

import asyncio
import ctypes
import socket
import struct
from dataclasses import replace

import pytest

from gearshift.sidecar import service
from tests.functional.sidecar.conftest import MakeWorld
from tests.functional.sidecar.fake_kube import ROUTER, token_of
from tests.functional.sidecar.world import TIMINGS


def deafen(sock: socket.socket) -> None:
    """Drop every packet that comes to a socket, as when its machine has lost power."""
    code = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: keep 0 bytes of each
    sock.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", 1, ctypes.addressof(code)))  # SO_ATTACH_FILTER


async def test_a_half_sent_head_is_given_up(make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "IDLE_SECONDS", 0.1)
    world = await make_world().start()
    for port in (world.settings.ports.control, world.settings.ports.metrics):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/state HTTP/1.1\r\n")
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()


async def test_a_router_whose_machine_is_lost_is_soon_forgotten(make_world: MakeWorld) -> None:
    world = await make_world(timings=replace(TIMINGS, router_silence=0.3)).start()
    loop = asyncio.get_running_loop()
    with socket.create_connection(("127.0.0.1", world.settings.ports.control)) as router:
        router.setblocking(False)
        head = f"GET /v1/state/stream?router=r1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token_of(ROUTER)}\r\n\r\n"
        await loop.sock_sendall(router, head.encode())
        assert b" 200 " in await loop.sock_recv(router, 4096)
        deafen(router)
        assert (await world.ordered("DP", drainTimeout="20s")).result == "Committed"
