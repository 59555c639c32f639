# SPDX-License-Identifier: Apache-2.0
"""CPU that the router costs per request, as a ratio to a bare aiohttp relay measured in the same run under the same
load.

Backend, relay and router are processes of their own; the relay and the router share one core, so that they run under
the same conditions, and backend and load generator the others. Rounds of the two alternate; the CPU time of each is
read from ``/proc`` around its rounds. The router is the product's own `Router`, with a static endpoint source and a
state stream from the backend process instead of a cluster.

Run: ``python bench/router.py [--rounds N] [--requests N]``; prints JSON lines ``{"name", "value", "unit", "reference",
"ratio"}``.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from gearshift.api.routerconfig import RouterConfig
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.api.wire import PodState
from gearshift.router.endpoints import Endpoint, Publish
from gearshift.router.service import Router, quiet_collector
from gearshift.router.tokens import TokenFile

MODEL = "bench"
CHUNKS = 100
EVENT = (
    b"data: "
    + json.dumps({"id": "cmpl-1", "object": "text_completion", "choices": [{"text": "x" * 150}]}).encode()
    + b"\n\n"
)
ANSWER = json.dumps({"id": "cmpl-1", "object": "text_completion", "choices": [{"text": "x" * 400}]}).encode()
PODS = 4
CONCURRENCY = 16
CPU_CLOCK_OF_PROCESS = 2  # what clock_getcpuclockid(3) adds to the process id


@dataclass(frozen=True)
class Case:
    """One kind of load."""

    name: str
    stream: bool
    requests: int  # of one round


def body(stream: bool) -> bytes:
    """A chat request of 1.5 kB."""
    document = {
        "model": MODEL,
        "stream": stream,
        "max_tokens": 100,
        "temperature": 0.7,
        "messages": [{"role": "user", "content": ""}],
    }
    document["messages"] = [{"role": "user", "content": "x" * (1536 - len(json.dumps(document)))}]
    return json.dumps(document).encode()


async def complete(request: web.BaseRequest) -> web.StreamResponse:
    """Backend: one answer, or a stream of `CHUNKS` events that are written apart from each other."""
    if b'"stream": true' not in await request.read():
        return web.Response(body=ANSWER, headers={"Content-Type": "application/json"})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(CHUNKS):
        await response.write(EVENT)
        await asyncio.sleep(0.002)
    return response


async def stream_state(request: web.BaseRequest, uid: str) -> web.StreamResponse:
    """Backend: a sidecar whose load changes as fast as one may."""
    state = PodState(
        pod="p",
        uid=uid,
        sequence=1,
        epoch=0,
        phase=PodPhase.SERVING,
        admitting=True,
        role=Role.UNIFIED,
        layout=Layout.TP,
        layouts=[Layout.TP],
        engine_port=request.url.port or 0,
        model=MODEL,
    )
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(json.dumps(state.dump()).encode() + b"\n")
        await asyncio.sleep(0.1)


async def serve_backend() -> None:
    """Engine and sidecars of all pods in one process: one port each for the engine and for the sidecar of every pod."""

    async def listen(uid: str) -> int:
        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            if request.path == "/v1/state/stream":
                return await stream_state(request, uid)
            return web.Response(status=204) if request.path == "/v1/acks" else await complete(request)

        runner = web.ServerRunner(web.Server(handle, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    print(*[await listen(f"uid-{number}") for number in range(PODS)], flush=True)
    await asyncio.Event().wait()


class Static:
    """Endpoint source that knows its endpoints from the start."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = endpoints

    async def run(self, publish: Publish) -> None:
        """Publish once."""
        publish(self._endpoints)
        await asyncio.Event().wait()


async def serve_router(ports: Sequence[int]) -> None:
    """The product's router in front of the backend's pods."""
    config = RouterConfig(namespace="bench", service="bench", service_uid="u", model=MODEL)
    endpoints = [Endpoint(f"p-{n}", f"uid-{n}", "127.0.0.1", control_port=port) for n, port in enumerate(ports)]
    with tempfile.NamedTemporaryFile("w") as token:
        token.write("bench")
        token.flush()
        router = Router(config, Static(endpoints), TokenFile(Path(token.name)), "bench")
        await router.start("127.0.0.1", 0, 0)
        while sum(pod.admitting for pod in router.fleet.pods.values()) < len(ports):
            await router.fleet.change.wait()
        quiet_collector()  # as the router's own process does
        print(router.port, flush=True)
        await asyncio.Event().wait()


class Server:
    """A child process that prints its ports when it serves."""

    def __init__(self, command: Sequence[str], cores: set[int]) -> None:
        self._process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
        os.sched_setaffinity(self._process.pid, cores)
        assert self._process.stdout is not None
        self.ports = [int(port) for port in self._process.stdout.readline().split()]
        if not self.ports:
            raise RuntimeError(f"{command} did not start")

    def cpu_seconds(self) -> float:
        """User and system time of the process so far, from its CPU clock: ``/proc/<pid>/stat`` counts in steps of 10
        ms.
        """
        return time.clock_gettime((~self._process.pid << 3) | CPU_CLOCK_OF_PROCESS)

    def stop(self) -> None:
        """End the process."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


async def load(session: ClientSession, url: str, case: Case) -> None:
    """One round of requests, a fixed number at a time; every answer is checked."""
    payload, left = body(case.stream), iter(range(case.requests))
    expected = len(EVENT) * CHUNKS if case.stream else len(ANSWER)

    async def worker() -> None:
        for _ in left:
            async with session.post(url, data=payload, headers={"Content-Type": "application/json"}) as answer:
                got = len(await answer.read())
                if answer.status != 200 or got != expected:
                    raise RuntimeError(f"{url}: {answer.status}, {got} bytes instead of {expected}")

    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))


async def measure(servers: dict[str, Server], case: Case, rounds: int) -> dict[str, list[float]]:
    """CPU milliseconds a request, one value a round and server."""
    results: dict[str, list[float]] = {name: [] for name in servers}
    async with ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=120)) as session:
        for number in range(rounds + 1):  # the first round warms up
            names = sorted(servers, reverse=number % 2 == 0)  # neither always runs second
            for name in names:
                server = servers[name]
                before = server.cpu_seconds()
                await load(session, f"http://127.0.0.1:{server.ports[0]}/v1/chat/completions", case)
                if number:
                    results[name].append((server.cpu_seconds() - before) * 1000 / case.requests)
    return results


def report(case: Case, results: dict[str, list[float]]) -> float:
    """Print one JSON line: medians of all rounds, and the median of the ratios of neighbouring rounds."""
    router, relay = statistics.median(results["router"]), statistics.median(results["relay"])
    ratio = statistics.median(ours / bare for ours, bare in zip(results["router"], results["relay"], strict=True))
    line = {
        "name": case.name,
        "value": round(router, 4),
        "unit": "ms CPU/request",
        "reference": round(relay, 4),
        "ratio": round(ratio, 3),
    }
    print(json.dumps(line), flush=True)
    return ratio


def compare(rounds: int, requests: int) -> list[float]:
    """Start everything, print a line a case, and return the ratios."""
    cores = sorted(os.sched_getaffinity(0))
    under_test, others = {cores[0]}, set(cores[1:]) or {cores[0]}
    os.sched_setaffinity(0, others)
    cases = (
        Case("router.whole_1536B", stream=False, requests=requests),
        Case("router.stream_100_chunks", stream=True, requests=max(requests // 10, 10)),
    )
    with contextlib.ExitStack() as stack:

        def start(cores: set[int], *command: str) -> Server:
            server = Server(command, cores)
            stack.callback(server.stop)
            return server

        backend = start(others, __file__, "--serve", "backend")
        relay = start(under_test, str(Path(__file__).with_name("relay.py")), f"http://127.0.0.1:{backend.ports[0]}")
        router = start(under_test, __file__, "--serve", "router", "--ports", *map(str, backend.ports))
        servers = {"relay": relay, "router": router}
        return [report(case, uvloop.run(measure(servers, case, rounds))) for case in cases]


def main() -> int:
    """Run one of the processes, or the benchmark: 1 when the router costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", choices=["backend", "router"], help=argparse.SUPPRESS)
    parser.add_argument("--ports", type=int, nargs="*", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=21, help="rounds of each case")
    parser.add_argument("--requests", type=int, default=1000, help="requests of a round; a tenth of it for streams")
    parser.add_argument("--max-ratio", type=float, default=1.3, help="fail above this")
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve_backend() if options.serve == "backend" else serve_router(options.ports))
        return 0
    return int(max(compare(options.rounds, options.requests)) > options.max_ratio)


if __name__ == "__main__":
    sys.exit(main())
