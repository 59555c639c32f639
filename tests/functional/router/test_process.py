# SPDX-License-Identifier: Apache-2.0
"""The process ``python -m gearshift.router``: its configuration, its ports, its end."""

import asyncio
import json
import os
import re
import resource
import signal
import sys
from pathlib import Path

import aiohttp
import yaml

from gearshift.api import names
from tests.functional.router.fakeapi import PODS, FakeApi, pod
from tests.functional.router.fakes import MODEL, TOKEN, FakePod, until

PROCESS = """
import sys
from gearshift.api import names
names.PORT_ROUTER = names.PORT_ROUTER_METRICS = 0
names.TOKEN_FILE, names.PORT_CONTROL = sys.argv[1], int(sys.argv[2])
from gearshift.router import endpoints, __main__
endpoints.Endpoint.__init__.__defaults__ = (None, False, names.PORT_CONTROL)
sys.exit(__main__.main())
"""
CONFIG = {"namespace": "apps", "service": "chat", "serviceUid": "u1", "model": MODEL}


async def process(
    tmp_path: Path, config: str | None, *, kubeconfig: Path | None = None, control_port: int = 1, files: str = ""
) -> asyncio.subprocess.Process:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("KUBE", "GEARSHIFT_ROUTER"))}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    if config is not None:
        environment[names.ENV_ROUTER_CONFIG] = config
    if kubeconfig is not None:
        environment["KUBECONFIG"] = str(kubeconfig)
    (tmp_path / "token").write_text(TOKEN)
    return await asyncio.create_subprocess_exec(
        *(["prlimit", f"--nofile={files}"] if files else []),
        sys.executable,
        "-c",
        PROCESS,
        str(tmp_path / "token"),
        str(control_port),
        env=environment,
        stderr=asyncio.subprocess.PIPE,
    )


async def said(running: asyncio.subprocess.Process, pattern: str) -> re.Match[str]:
    """Wait for a line of the log."""
    assert running.stderr is not None
    async with asyncio.timeout(20):
        async for line in running.stderr:
            if found := re.search(pattern, line.decode()):
                return found
    raise AssertionError(f"the process ended without saying {pattern!r}")


async def test_a_configuration_that_cannot_be_used_ends_the_process(tmp_path: Path) -> None:
    running = await process(tmp_path, json.dumps({**CONFIG, "maxQueue": -1}))
    _, errors = await running.communicate()
    assert running.returncode == 2
    assert "maxQueue: Input should be greater than or equal to 0, not -1" in errors.decode()
    assert "Traceback" not in errors.decode()


def kubeconfig(tmp_path: Path, server: str) -> Path:
    """A file that leads to an API server."""
    cluster = {"name": "c", "cluster": {"server": server}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    document = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "x"}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


async def test_it_takes_as_many_files_as_it_may_and_says_when_that_is_few(tmp_path: Path) -> None:
    api = FakeApi()
    at = kubeconfig(tmp_path, await api.start())
    running = await process(tmp_path, json.dumps(CONFIG), kubeconfig=at, files="256:2048")
    try:
        found = await said(running, r"(\d+) files may be open, maxConnections 8192 and maxInFlight 4096 can need (\d+)")
        assert (found.group(1), int(found.group(2)) > 8192 + 4096) == ("2048", True)
        await said(running, r"on port (\d+)")
        assert resource.prlimit(running.pid, resource.RLIMIT_NOFILE) == (2048, 2048)
    finally:
        running.kill()
        await running.wait()
        await api.stop()


async def test_it_serves_from_the_api_server_and_ends_well(tmp_path: Path) -> None:
    api, engine = FakeApi(), FakePod("a")
    await engine.start()
    api.put(PODS, pod("a", "127.0.0.1"))
    at = kubeconfig(tmp_path, await api.start())
    running = await process(tmp_path, json.dumps(CONFIG), kubeconfig=at, control_port=engine.control_port)
    try:
        port = (await said(running, r"on port (\d+)")).group(1)
        await until(lambda: engine.acks)
        await api.stop()  # the data path needs it no more
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"http://127.0.0.1:{port}/v1/completions", json={"model": MODEL, "prompt": "hello"}) as answer,
        ):
            assert await answer.json() == {"choices": [{"text": "5"}]}
        running.send_signal(signal.SIGTERM)
        async with asyncio.timeout(20):
            assert await running.wait() == 0
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
        await engine.stop()
