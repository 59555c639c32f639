# SPDX-License-Identifier: Apache-2.0
"""Real vLLM servers as subprocesses of the engine environment, and what a sidecar or a client says to them."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.vllm.watchdog import watchdog

READY_SECONDS = 400.0
POD_USER = 65532
NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_both", "kv_buffer_device": "cpu"}
GREEDY = {"model": "tiny", "temperature": 0, "ignore_eos": True, "return_token_ids": True}
NIXL_ARGS = ["--kv-transfer-config", json.dumps(NIXL)]


@dataclass(frozen=True)
class Environment:
    """Where the engine's interpreter, the staged code, the model and a folder for servers are."""

    python: Path
    code: Path
    model: Path
    scratch: Path

    @property
    def vllm(self) -> Path:
        """The package folder of vLLM."""
        (found,) = (self.python.parents[1] / "lib").glob("python3*/site-packages/vllm")
        return found

    def argv(self, port: int, *extra: str) -> list[str]:
        """The server's command line."""
        fixed = ["--model", str(self.model), "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port)]
        quick = ["--max-model-len", "4096", "--dtype", "float32", "--enforce-eager"]
        return [str(self.python), "-m", "vllm.entrypoints.openai.api_server", *fixed, *quick, *extra]

    def env(self, home: Path, *, cores: str, nixl_port: int) -> dict[str, str]:
        """The whole environment of a server: what a pod gives it, and no more."""
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "TMPDIR": str(home),
            "USER": "gearshift",
            "PYTHONPATH": str(self.code),
            "HF_HUB_OFFLINE": "1",
            "VLLM_PLUGINS": "gearshift",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": cores,
            "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
            "VLLM_NIXL_SIDE_CHANNEL_PORT": str(nixl_port),
            "UCX_TLS": "tcp",
        }


@dataclass
class Client:
    """HTTP to one server."""

    port: int
    seconds: float = 300.0
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Status and decoded body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data, {**self.headers, **(headers or {})}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=self.seconds) as answer:
                return answer.status, _decoded(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _decoded(error.read())

    def state(self) -> dict[str, Any]:
        """``GET engine``."""
        return self.order("GET", "engine")

    def order(self, method: str, route: str, body: Any = None) -> dict[str, Any]:
        """One of the plugin's routes, which must succeed."""
        status, answer = self.call(method, f"/gearshift/v1/{route}", body)
        assert status == 200, answer
        assert isinstance(answer, dict)
        return answer

    def complete(self, prompt: list[int], tokens: int, **extra: Any) -> dict[str, Any]:
        """A greedy completion from and to token ids."""
        status, answer = self.call(
            "POST", "/v1/completions", {"prompt": prompt, "max_tokens": tokens, **GREEDY, **extra}
        )
        assert status == 200, answer
        assert isinstance(answer, dict)
        return answer

    def tokens(self, prompt: list[int], tokens: int, **extra: Any) -> list[int]:
        """The ids of a completion."""
        found: list[int] = self.complete(prompt, tokens, **extra)["choices"][0]["token_ids"]
        return found

    def metric(self, name: str) -> float:
        """Sum of a metric over its labels."""
        _, text = self.call("GET", "/metrics")
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.split("{")[0] == name)

    def wait_ready(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Return once the server has answered a token; `/health` says yes before the first one can be made."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert process.poll() is None, f"the server ended:\n{log.read_text()[-4000:]}"
            with suppress(OSError):
                if self.call("GET", "/health")[0] == 200:
                    self.tokens([5, 6, 7], 1)
                    return
            time.sleep(0.5)
        raise AssertionError(f"the server was not ready in time:\n{log.read_text()[-4000:]}")


@dataclass
class Engine:
    """One running server, its client and its log."""

    client: Client
    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        """End the server and all of its session."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)


def start(environment: Environment, name: str, cores: str, *extra: str) -> Engine:
    """Start a server as the user of a pod (when this is root), with one writable folder."""
    home = environment.scratch / name
    home.mkdir()
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:
        os.chown(home, POD_USER, POD_USER)
        as_user = {"user": POD_USER, "group": POD_USER, "extra_groups": []}
    port, log = free_port(), environment.scratch / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            environment.argv(port, *extra),
            env=environment.env(home, cores=cores, nixl_port=free_port()),
            cwd="/",
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **as_user,
        )
    watchdog().watch(process.pid)
    return Engine(Client(port), process, log)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def prompt(seed: int, length: int = 200) -> list[int]:
    """A prompt of token ids that differs from its first block on by ``seed``."""
    return [(11 * step * step + 5 * step + 17 * seed) % 1000 + 8 for step in range(length)]


def until(condition: Callable[[], bool]) -> None:
    """Poll until the condition holds, for three minutes at most."""
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline, "condition not met in time"
        time.sleep(0.01)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body) if body else {}
    except json.JSONDecodeError:
        return body.decode(errors="replace")


def engine_python() -> Path:
    """The interpreter of the engine environment."""
    cache = Path(os.environ.get("GEARSHIFT_CACHE", "/var/cache/gearshift"))
    return Path(os.environ.get("GEARSHIFT_ENGINE_PYTHON", cache / "envs" / "engine" / "bin" / "python"))
