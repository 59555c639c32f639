# SPDX-License-Identifier: Apache-2.0
"""The sidecar with the real engine host and the real Simulated engine, each a process of its own."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gearshift.sidecar.host_client import HostClient
from tests.functional.sidecar.fake_host import FakeHost
from tests.functional.sidecar.world import TIMINGS, World

ROOT = Path(__file__).parents[3]
SOURCES = os.pathsep.join(str(ROOT / part) for part in ("core", "sidecar"))


class RealHost(FakeHost):
    """The engine host's process in the place of the fake one."""

    def __init__(self, socket: Path) -> None:
        super().__init__(socket)
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        environ = {**os.environ, "PYTHONPATH": SOURCES}
        command = ["-m", "gearshift.engine.host", "--socket", str(self._socket), "--grace-seconds", "20"]
        self.process = await asyncio.create_subprocess_exec(sys.executable, *command, env=environ)

    async def stop(self) -> None:
        if self.process is not None and self.process.returncode is None:
            client = HostClient(self._socket, 5.0)
            await client.shut_down(0.0)
            await client.close()
            await self.process.wait()


@asynccontextmanager
async def real_world(**config: Any) -> AsyncIterator[World]:
    """A pod with a real host and engine; it serves."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(
            Path(folder),
            timings=TIMINGS,
            **config,
            engine_args=["--startup", "10ms", "--speed", "1000"],
            engine_env={"GEARSHIFT_ENGINE_PYTHON": sys.executable, "PYTHONPATH": SOURCES},
        )
        world.host = RealHost(world.settings.host_socket)
        try:
            yield await world.start()
        finally:
            await world.stop()


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    """A disaggregated one."""
    async with real_world(disaggregated=True) as world:
        yield world


async def engine(world: World, method: str, route: str, body: Any = None) -> Any:
    url = f"http://127.0.0.1:{world.settings.ports.engine}/gearshift/v1/{route}"
    async with world.session.request(method, url, json=body) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_layout_and_role_change_with_proof_and_the_pod_ends_cleanly(world: World) -> None:
    layout = await world.ordered("DP")
    assert (layout.result, layout.message) == ("Committed", "")
    role = await world.ordered("Prefill", kind="Role", id_="t2")
    assert (role.result, role.message) == ("Committed", "")
    state = await engine(world, "GET", "engine")
    assert (state["layout"], state["role"], state["epoch"]) == ("DP", "Prefill", 2)
    assert isinstance(world.host, RealHost)
    assert world.host.process is not None
    world.host.process.send_signal(signal.SIGTERM)
    await world.until_phase("Terminating")
    assert await asyncio.wait_for(world.host.process.wait(), 15.0) == 0


@pytest.mark.parametrize(
    ("fault", "result", "reason"),
    [
        ("says-yes-and-does-nothing", "RolledBack", "VerificationFailed"),
        ("fail-probe-after-switch", "RolledBack", "VerificationFailed"),
        ("die-on-switch", "RolledBack", "EngineLost"),
        ("switch-half-of-ranks", "Failed", "RollbackFailed"),
    ],
)
async def test_a_fault_of_the_engine_never_commits(world: World, fault: str, result: str, reason: str) -> None:
    await engine(world, "POST", "faults", {"faults": [fault]})
    status = await world.ordered("DP")
    assert (status.result, status.reason, status.proof) == (result, reason, None)
    if result == "RolledBack":
        state = await world.until_phase("Serving")
        assert (state.admitting, state.epoch, state.layout) == (True, 0, "TP")
        found = await engine(world, "GET", "engine")
        assert (found["layout"], found["epoch"]) == ("TP", 0)
    else:
        assert not (await world.state()).admitting


async def test_the_threshold_of_shift_changes_live_with_proof_and_outlives_the_sidecar() -> None:
    async with real_world(layouts=["Shift", "TP"], initial_layout="Shift", shift_threshold_tokens=96) as world:
        assert (await world.state()).shift_threshold_tokens == 96
        status = await world.ordered("Shift", shiftThresholdTokens=64, drain="None")
        assert (status.result, status.from_, status.to) == ("Committed", "Shift", "Shift")
        assert status.proof is not None
        assert (status.proof.epoch_after, status.proof.details["shiftThresholdTokens"]) == (1, "64")
        assert (await world.state()).shift_threshold_tokens == 64
        assert (await engine(world, "GET", "engine"))["shiftThresholdTokens"] == 64
        code, answer = await world.order("Shift", id_="t2", shiftThresholdTokens=64, expectedEpoch=1)
        assert (code, answer["reason"]) == (422, "NoChange")
        await world.stop_sidecar()
        await world.start_sidecar()
        await world.until_phase("Serving")
        assert (await world.state()).shift_threshold_tokens == 64


async def test_a_threshold_that_the_engine_did_not_take_is_rolled_back() -> None:
    async with real_world(layouts=["Shift"], initial_layout="Shift", shift_threshold_tokens=96) as world:
        await engine(world, "POST", "faults", {"faults": ["says-yes-and-does-nothing"]})
        status = await world.ordered("Shift", shiftThresholdTokens=64, drain="None")
        assert (status.result, status.reason, status.proof) == ("RolledBack", "VerificationFailed", None)
        assert "shiftThresholdTokens is 96, not 64" in status.message
        assert (await world.until_phase("Serving")).shift_threshold_tokens == 96
