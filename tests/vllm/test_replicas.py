# SPDX-License-Identifier: Apache-2.0
"""Two data-parallel replicas in one server, run by the real engine host: orders reach both, the end leaves nothing."""

import http.client
import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gearshift.engine.host.leftovers import PATTERNS, SHARED_MEMORY
from gearshift.engine.host.procfs import below, processes
from tests.functional.engine.host_harness import HostProcess, alive
from tests.vllm.engines import Client, Environment, free_port, prompt, until
from tests.vllm.streams import ENDLESS, LONG, streams


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("host", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self._path))


@dataclass
class Hosted:
    """The host, the server that it runs, and when it was started."""

    host: HostProcess
    client: Client
    since: float

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """One request to the host."""
        connection = UnixConnection(self.host.socket)
        connection.request(method, path, json.dumps(body))
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def left_in_shared_memory(self) -> list[str]:
        """Segments of this user that came after the start and that nobody has mapped."""
        maps = "".join(_maps(process.pid) for process in processes())
        found = [path for pattern in PATTERNS for path in SHARED_MEMORY.glob(pattern)]
        return [path.name for path in found if path.stat().st_mtime >= self.since and path.name not in maps]


def _maps(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ""


def _listens(path: Path) -> bool:
    """Whether a server accepts on a Unix socket: its file is there a moment earlier."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.fixture(scope="module")
def hosted(environment: Environment) -> Iterator[Hosted]:
    with tempfile.TemporaryDirectory() as folder:
        hosted = Hosted(HostProcess(Path(folder), grace_seconds=20.0), Client(free_port()), time.time())
        until(lambda: _listens(hosted.host.socket))
        home = environment.scratch / "dp"
        home.mkdir()
        argv = environment.argv(hosted.client.port, "--data-parallel-size", "2")
        env = environment.env(home, cores="0|1", nixl_port=free_port())
        assert hosted.ask("PUT", "/v1/processes/dp", {"argv": argv, "env": env})["state"] == "Running"
        try:
            hosted.client.wait_ready(hosted.host.process, hosted.host.log)
            yield hosted
        finally:
            hosted.host.process.terminate()
            hosted.host.process.wait(60)


def test_both_replicas_are_counted(hosted: Hosted) -> None:
    state = hosted.client.state()
    assert (state["layout"], state["layouts"]) == ("DP", ["DP"])
    assert (state["ranks"], state["worldSize"], state["details"]["cores"]) == (2, 2, "2")


def test_a_role_reaches_both_replicas(hosted: Hosted) -> None:
    state = hosted.client.order("POST", "role", {"role": "Decode", "epoch": 2, "knobs": {"maxNumSeqs": 1}})
    assert (state["role"], state["epoch"], state["ranks"]) == ("Decode", 2, 2)
    assert "coresDisagreeOn" not in state["details"]
    with streams(hosted.client, [prompt(seed, 40) for seed in range(60, 64)], ENDLESS):
        until(lambda: _load(hosted.client) == (2, 2))  # one request in each replica, the others wait
    until(lambda: _load(hosted.client) == (0, 0))
    assert hosted.client.order("POST", "role", {"role": "Unified", "epoch": 3})["knobs"]["maxNumSeqs"] > 1


def test_a_pause_stops_both_replicas_and_changes_no_token(hosted: Hosted) -> None:
    client = hosted.client
    seeds = range(70, 74)
    reference = [client.tokens(prompt(seed), LONG) for seed in seeds]
    with streams(client, [prompt(seed) for seed in seeds], LONG) as running:
        for stream in running:
            stream.begun()
        assert client.order("POST", "pause", {})["paused"] is True
        made = client.metric("vllm:generation_tokens_total")
        for _ in range(50):
            assert client.state()["running"] == 4
        assert client.metric("vllm:generation_tokens_total") == made
        client.order("POST", "resume")
        assert [stream.tokens() for stream in running] == reference


def test_another_layout_is_refused(hosted: Hosted) -> None:
    status, answer = hosted.client.call("POST", "/gearshift/v1/layout", {"layout": "TP", "epoch": 9})
    assert (status, answer["reason"]) == (422, "NotCapable")
    assert hosted.client.order("POST", "layout", {"layout": "DP", "epoch": 4})["epoch"] == 4


def test_the_end_of_the_host_leaves_nothing(hosted: Hosted) -> None:
    pids = below(hosted.host.process.pid, processes())
    assert len(pids) >= 3
    assert hosted.ask("GET", "/v1/processes")["processes"][0]["state"] == "Running"
    hosted.host.process.terminate()
    assert hosted.host.process.wait(60) == 0
    assert [pid for pid in pids if alive(pid)] == []
    assert hosted.left_in_shared_memory() == []
    assert os.path.lexists(hosted.host.socket) is False


def _load(client: Client) -> tuple[int, int]:
    state = client.state()
    return state["running"], state["waiting"]
