# SPDX-License-Identifier: Apache-2.0
"""What the operator's functional tests are made of: operator processes, pods without a kubelet, and their sidecars."""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

from gearshift.api import names
from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind, TransitionResult
from gearshift.api.wire import PodState, Proof, TransitionRequest, TransitionStatus
from gscluster.fast import FastCluster
from gscluster.identities import write_kubeconfig

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]
OWN_NAMESPACE = "gearshift-system"
IMAGE = "gearshift.local/gearshift:dev"


def until(condition: Callable[[], Any], what: str, seconds: float = 20.0) -> Any:
    """The first true value of ``condition``, asked until a deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what}; last answer {value!r}")
        time.sleep(0.05)


def install(cluster: FastCluster) -> None:
    """CRD, and the operator's namespace, account and rights as ``config/`` gives them."""
    cluster.kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
    cluster.kubectl("apply", "-f", str(ROOT / "config/namespace.yaml"))
    cluster.kubectl("apply", "-f", str(ROOT / "config/rbac"))
    cluster.kubectl("wait", "--for=condition=Established", "crd/inferenceservices.gearshift.dev", "--timeout=20s")


class Operator:
    """One operator process with the rights of ``config/rbac`` and no others."""

    def __init__(self, cluster: FastCluster, folder: Path, name: str, **flags: str) -> None:
        token = cluster.kubectl("create", "token", "gearshift-operator", "-n", OWN_NAMESPACE).strip()
        self.kubeconfig = folder / f"{name}.kubeconfig"
        authority = next((cluster.folder / "pki").glob("ca.crt"))
        write_kubeconfig(self.kubeconfig, cluster.endpoints.server, authority, token)
        (folder / "control-token").write_text("a control token\n")
        self.log_file = folder / f"{name}.log"
        self._flags = {
            "image": IMAGE,
            "kubeconfig": str(self.kubeconfig),
            "token-file": str(folder / "control-token"),
            "metrics-host": "127.0.0.1",
            "metrics-port": "0",
            "log-format": "text",
            "tick-seconds": "0.5",
            **{key.replace("_", "-"): value for key, value in flags.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Operator":
        """Start the process."""
        roots = [str(ROOT / part) for part in ("core", "operator", "sidecar", "router", "cli")]
        argv = [sys.executable, "-m", "gearshift.operator"]
        argv += [word for flag, value in self._flags.items() for word in (f"--{flag}", value)]
        with self.log_file.open("ab") as log:
            environment = {"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(roots)}
            self._process = subprocess.Popen(argv, env=environment, stdout=log, stderr=log)
        return self

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The running process."""
        assert self._process is not None
        return self._process

    @property
    def log(self) -> str:
        """Everything that it has logged."""
        return self.log_file.read_text(errors="replace")

    def leads(self) -> bool:
        """It has taken the lease."""
        assert self.process.poll() is None, f"operator ended with {self.process.returncode}:\n{self.log[-3000:]}"
        return "leading with fencing token" in self.log

    def metrics(self) -> str:
        """Its metrics page."""
        port = self.log.split("metrics on port ", 1)[1].split(",", 1)[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text: str = answer.read().decode()
        return text

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal the process and wait; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=20)


@contextlib.contextmanager
def operator(cluster: FastCluster, folder: Path, name: str = "operator", **flags: str) -> Iterator[Operator]:
    """A leading operator process, ended on exit."""
    one = Operator(cluster, folder, name, **flags).start()
    try:
        until(one.leads, "the operator to lead", 30)
        yield one
    finally:
        one.stop()
        assert "this is a defect" not in one.log, one.log[-6000:]


class Sidecar:
    """A sidecar that answers what a test tells it to."""

    def __init__(self, pod: Json, address: str) -> None:
        self.address = address
        container = pod["spec"]["initContainers"][0]
        text = next(entry["value"] for entry in container["env"] if entry["name"] == names.ENV_POD_CONFIG)
        config = PodConfig.model_validate(json.loads(text))
        self.state = PodState(
            pod=pod["metadata"]["name"],
            uid=pod["metadata"]["uid"],
            sequence=1,
            epoch=0,
            phase=PodPhase.SERVING,
            admitting=True,
            role=config.initial_role,
            layout=config.initial_layout,
            layouts=config.layouts,
            engine_port=names.PORT_ENGINE,
            model=config.model,
            since=time.time(),
        )
        self.orders: list[TransitionRequest] = []
        self.tokens: list[str] = []
        self.hold = threading.Event()  # set: transitions stay in Draining until released
        self.fails = False  # transitions are rolled back

    def routes(self) -> list[web.RouteDef]:
        """The control API."""
        return [web.get("/v1/state", self._state), web.post("/v1/transitions", self._order)]

    async def _state(self, request: web.Request) -> web.Response:
        self.tokens.append(request.headers.get("Authorization", ""))
        if self.state.transition is not None and not self.hold.is_set():
            self.finish()
        return web.json_response(self.state.dump())

    async def _order(self, request: web.Request) -> web.Response:
        order = TransitionRequest.model_validate(await request.json())
        if order.fencing_token < self.state.fencing_token:
            body = {"reason": "StaleFencingToken", "message": "stale", "fencingToken": self.state.fencing_token}
            return web.json_response(body, status=409)
        self.orders.append(order)
        before = self.state.layout.value if order.kind is TransitionKind.LAYOUT else self.state.role.value
        status = TransitionStatus(
            id=order.id, kind=order.kind, from_=before, to=order.to, phase=PodPhase.DRAINING, started_at=time.time()
        )
        self._set(transition=status, phase=PodPhase.DRAINING, admitting=False, fencing_token=order.fencing_token)
        return web.json_response(status.dump(), status=202)

    def finish(self) -> None:
        """Bring the running transition to its end."""
        running = self.state.transition
        if running is None or running.finished_at is not None:
            return
        if self.fails:
            ended = {"result": TransitionResult.ROLLED_BACK, "reason": "VerificationFailed", "finished_at": time.time()}
            self._set(transition=running.model_copy(update={**ended, "phase": PodPhase.SERVING}))
        else:
            self._commit(running)
        self._set(phase=PodPhase.SERVING, admitting=True, since=time.time())

    def _commit(self, running: TransitionStatus) -> None:
        epoch = self.state.epoch + 1
        proof = Proof(
            epoch_before=epoch - 1, epoch_after=epoch, ranks=8, expected_ranks=8, engine="main", probe_tokens=1,
            probe_seconds=0.01, routers=1,
        )  # fmt: skip
        ended = {"result": TransitionResult.COMMITTED, "reason": "Verified", "finished_at": time.time(), "proof": proof}
        layout = running.kind is TransitionKind.LAYOUT
        changed = {"layout": Layout(running.to)} if layout else {"role": Role(running.to)}
        self._set(epoch=epoch, transition=running.model_copy(update={**ended, "phase": PodPhase.SERVING}), **changed)

    def _set(self, **fields: Any) -> None:
        self.state = self.state.model_copy(update={**fields, "sequence": self.state.sequence + 1})


class Kubelet:
    """Stands in for a kubelet: gives pods an address, readiness, and a sidecar on that address."""

    _hosts = itertools.count(2)

    def __init__(self, cluster: FastCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._loop = asyncio.new_event_loop()
        self._runners: list[web.AppRunner] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.sidecars: dict[str, Sidecar] = {}  # by uid

    def pods(self) -> list[Json]:
        """Engine pods of the namespace, by name."""
        selector = f"{names.LABEL_COMPONENT}={names.COMPONENT_ENGINE}"
        found: list[Json] = self._cluster.kubectl.json("get", "pods", "-n", self._namespace, "-l", selector)["items"]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def run_all(self, count: int, seconds: float = 20.0) -> dict[str, Sidecar]:
        """Run pods as they come until ``count`` run and none is being deleted; sidecars by pod name."""
        return dict(until(lambda: self._running(count), f"{count} pods", seconds))

    def _running(self, count: int) -> dict[str, Sidecar] | None:
        pods = self.pods()
        if len(pods) != count or any("deletionTimestamp" in pod["metadata"] for pod in pods):
            return None
        return {pod["metadata"]["name"]: self.sidecars.get(pod["metadata"]["uid"]) or self.run(pod) for pod in pods}

    def run(self, pod: Json) -> Sidecar:
        """Run one pod."""
        number = next(self._hosts)
        sidecar = Sidecar(pod, f"127.7.{number // 250}.{number % 250 + 1}")
        asyncio.run_coroutine_threadsafe(self._serve(sidecar), self._loop).result(5)
        self.sidecars[pod["metadata"]["uid"]] = sidecar
        self.report(pod["metadata"]["name"], sidecar.address, "Running", ready=True)
        return sidecar

    def report(self, name: str, address: str, phase: str, *, ready: bool) -> None:
        """Write a pod's status, as a kubelet does."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": now}]
        status = {"phase": phase, "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
        self._cluster.kubectl(
            "patch", "pod", name, "-n", self._namespace, "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": status}),
        )  # fmt: skip

    def close(self) -> None:
        """Stop all sidecars."""
        for runner in self._runners:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _serve(self, sidecar: Sidecar) -> None:
        app = web.Application()
        app.add_routes(sidecar.routes())
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, sidecar.address, names.PORT_CONTROL).start()
        self._runners.append(runner)


class Space:
    """A namespace with a kubelet stand-in, and what tests ask about the services in it."""

    def __init__(self, cluster: FastCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        cluster.kubectl("create", "namespace", name)
        self.kubelet = Kubelet(cluster, name)

    def apply(self, name: str = "chat", /, **spec: Any) -> None:
        """Apply an InferenceService of simulated pods; ``spec`` replaces fields of its spec."""
        whole = {"model": {"uri": "hf://org/llama"}, "engine": {"kind": "Simulated"}, **spec}
        self.cluster.kubectl.apply(
            {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "metadata": {"name": name, "namespace": self.name},
                "spec": whole,
            }
        )

    def get(self, kind: str, name: str) -> Json:
        """One object."""
        found: Json = self.cluster.kubectl.json("get", kind, name, "-n", self.name)
        return found

    def items(self, *kinds: str) -> list[Json]:
        """All objects of some kinds."""
        found: list[Json] = self.cluster.kubectl.json("get", ",".join(kinds), "-n", self.name)["items"]
        return found

    def status(self, name: str = "chat") -> Json:
        """Status of a service; empty before there is one."""
        found: Json = self.get("gsvc", name).get("status", {})
        return found

    def condition(self, kind: str, name: str = "chat") -> Json:
        """One condition; empty when it is absent."""
        found = [entry for entry in self.status(name).get("conditions", []) if entry["type"] == kind]
        return found[0] if found else {}

    def is_true(self, kind: str, name: str = "chat") -> bool:
        """A condition is True for the present generation."""
        body = self.get("gsvc", name)
        conditions = body.get("status", {}).get("conditions", [])
        found = next((entry for entry in conditions if entry["type"] == kind), {"status": ""})
        return found["status"] == "True" and found["observedGeneration"] == body["metadata"]["generation"]

    def run_router(self, name: str = "chat") -> None:
        """Make the router's Deployment available: by its pod where controllers make one, else by its status."""
        router = names.router_name(name)
        if self.cluster.controllers:
            selector = f"{names.LABEL_COMPONENT}={names.COMPONENT_ROUTER},{names.LABEL_SERVICE}={name}"
            argv = ("get", "pods", "-n", self.name, "-l", selector)
            pods = until(lambda: self.cluster.kubectl.json(*argv)["items"], "the router's pod")
            for pod in pods:
                self.kubelet.report(pod["metadata"]["name"], "127.0.0.1", "Running", ready=True)
            return
        until(lambda: router in {body["metadata"]["name"] for body in self.items("deployments")}, "the router")
        self.cluster.kubectl(
            "patch", "deployment", router, "-n", self.name, "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}}),
        )  # fmt: skip

    def serve(self, count: int, name: str = "chat") -> dict[str, Sidecar]:
        """Bring a service of ``count`` pods to Ready; sidecars by pod name."""
        sidecars = self.kubelet.run_all(count)
        self.run_router(name)
        until(lambda: self.is_true("Ready", name) and self.is_true("EnginesReady", name), f"{name} to be ready")
        return sidecars
