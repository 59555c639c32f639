# SPDX-License-Identifier: Apache-2.0
"""Act two: 8-accelerator pods on the Simulated engine under a bursty minute; layouts and roles change by themselves."""

import asyncio
import threading
import time
from typing import Any

from gearshift.sim.load import Outcome, Phase, Target, draw_arrivals, run_load, summarize
from gsstack import manifests
from gsstack.demo import screen, timeline
from gsstack.demo.chat import DemoError
from gsstack.demo.stage import NAMESPACE, Stage
from gsstack.services import Service

NAME = "burst"
MODEL = "simulated"
POLICY = {"window": "5s", "dwell": "5s", "cooldown": "2s", "objectives": {"ttft": "1s", "itl": "50ms"}}
PHASES = [
    Phase(seconds=10, requests_per_second=2, prompt_tokens=1024, output_tokens=32, spread=0.3),
    Phase(seconds=25, requests_per_second=16, prompt_tokens=4096, output_tokens=16, spread=0.3),
    Phase(seconds=15, requests_per_second=2, prompt_tokens=1024, output_tokens=32, spread=0.3),
    Phase(seconds=10, requests_per_second=16, prompt_tokens=4096, output_tokens=16, spread=0.3),
]


def play(stage: Stage) -> None:
    """Apply, load, print the timeline."""
    screen.title("Act two: a Llama-70B on 8-GPU pods (Simulated engine) under a bursty minute")
    service = _apply(stage)
    arrivals = draw_arrivals(PHASES, seed=1, max_requests=5000)
    screen.say(f"send {len(arrivals)} requests in {sum(phase.seconds for phase in PHASES):.0f} s")
    watcher = _Watcher(service)
    watcher.start()
    try:
        outcomes = asyncio.run(run_load(Target(url=service.url(), model=MODEL), arrivals))
    finally:
        watcher.stop()
    _report(service, outcomes, watcher)


def _apply(stage: Stage) -> Service:
    roles = [{"name": "Prefill", "replicas": 2}, {"name": "Decode", "replicas": 2}]
    parallelism = {"layouts": ["TP", "DP"], "initial": "TP"}
    args = ["--profile=llama-3-70b-fp8-h200", "--startup=2s"]
    parts: dict[str, Any] = {"roles": roles, "parallelism": parallelism, "policy": POLICY}
    screen.say("apply an InferenceService: two prefill and two decode pods, layouts TP and DP, policy Auto")
    stage.kubectl.apply(manifests.simulated(NAME, NAMESPACE, args=args, **parts))
    service = Service(stage.kubectl, NAMESPACE, NAME)
    service.wait_for(lambda status: status.get("readyReplicas") == 4, "four ready pods", 120)
    screen.block(stage.kubectl("get", "gsvc", "-n", NAMESPACE))
    return service


class _Watcher(threading.Thread):
    """Samples the status of a service until it is stopped."""

    def __init__(self, service: Service) -> None:
        super().__init__(daemon=True)
        self.samples: list[timeline.Sample] = []
        self.error: Exception | None = None
        self._service = service
        self._ended = threading.Event()
        self._begin = time.monotonic()

    def run(self) -> None:
        """Sample once a second."""
        try:
            while not self._ended.wait(1.0):
                self.samples.append(self._sample())
        except Exception as error:  # noqa: BLE001 - handed to the thread that asked, in `stop`
            self.error = error

    def _sample(self) -> timeline.Sample:
        status = self._service.status()
        pods = status.get("pods", [])
        moving = status.get("transition") or {}
        running = f"{moving['pod']} {moving['from']}->{moving['to']}" if moving.get("result") == "Running" else ""
        layouts, roles = tuple(pod["layout"] for pod in pods), tuple(pod["role"] for pod in pods)
        return timeline.Sample(time.monotonic() - self._begin, layouts, roles, running)

    def stop(self) -> None:
        """End the thread; raise what it met."""
        self._ended.set()
        self.join()
        if self.error is not None:
            raise self.error


def _report(service: Service, outcomes: list[Outcome], watcher: _Watcher) -> None:
    screen.block("\n".join([timeline.HEADER, *timeline.lines(outcomes, watcher.samples)]))
    summary = summarize(outcomes)
    screen.say(f"{summary['requests']} requests, {summary['failed']} failed, TTFT {summary['ttft_ms']} ms")
    history = service.status().get("transitionHistory", [])
    screen.say(f"{len(history)} transitions in status.transitionHistory, each with its proof:")
    for record in history:
        shown = f"{record['pod']} {record['kind']} {record['from']}->{record['to']} {record['result']}"
        screen.block(f"{shown} in {record.get('durationMilliseconds')} ms ({record['reason']}) {record.get('proof')}")
    _check(summary, history)


def _check(summary: dict[str, Any], history: list[dict[str, Any]]) -> None:
    if summary["failed"]:
        raise DemoError(f"{summary['failed']} requests failed: {summary['failures']}")
    kinds = {record["kind"] for record in history if record["result"] == "Committed"}
    if kinds != {"Layout", "Role"}:
        raise DemoError(f"committed transitions were of kinds {sorted(kinds)}, not of both")
