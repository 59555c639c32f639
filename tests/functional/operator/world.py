# SPDX-License-Identifier: Apache-2.0
"""What the operator's functional tests are made of: operator processes, pods without a kubelet, and their sidecars."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

from gearshift.api import names
from gscluster.fast import FastCluster
from gscluster.identities import write_kubeconfig
from tests.functional.loops import LoopThread
from tests.functional.operator.sidecar import Sidecar

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]
OWN_NAMESPACE = "gearshift-system"
IMAGE = "gearshift.local/gearshift:dev"


def until(condition: Callable[[], Any], what: str, seconds: float = 120.0) -> Any:
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
    cluster.kubectl.apply_crds(ROOT / "crds")
    cluster.kubectl("apply", "-f", str(ROOT / "config/namespace.yaml"))
    cluster.kubectl("apply", "-f", str(ROOT / "config/rbac"))


class Operator:
    """One operator process with the rights of ``config/rbac`` and no others.

    ``server`` is where it is told that the API server is; else where that really is.
    """

    def __init__(
        self, cluster: FastCluster, folder: Path, name: str, *, server: str | None = None, **flags: str
    ) -> None:
        token = cluster.kubectl("create", "token", "gearshift-operator", "-n", OWN_NAMESPACE).strip()
        self.kubeconfig = folder / f"{name}.kubeconfig"
        authority = next((cluster.folder / "pki").glob("ca.crt"))
        write_kubeconfig(self.kubeconfig, server or cluster.endpoints.server, authority, token)
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
def operator(
    cluster: FastCluster, folder: Path, name: str = "operator", *, server: str | None = None, **flags: str
) -> Iterator[Operator]:
    """A leading operator process, ended on exit."""
    one = Operator(cluster, folder, name, server=server, **flags).start()
    try:
        until(one.leads, "the operator to lead", 120)
        yield one
    finally:
        one.stop()
        assert "this is a defect" not in one.log, one.log[-6000:]


class Kubelet:
    """Stands in for a kubelet: gives pods an address, readiness, and a sidecar on that address."""

    _hosts = itertools.count(os.getpid() % 240 * 250 + 2)  # two test runs on one machine do not meet

    def __init__(self, cluster: FastCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._loop = LoopThread()
        self._runners: dict[str, web.AppRunner] = {}  # by uid
        self.sidecars: dict[str, Sidecar] = {}  # by uid

    def pods(self) -> list[Json]:
        """Engine pods of the namespace, by name."""
        selector = f"{names.LABEL_COMPONENT}={names.COMPONENT_ENGINE}"
        found: list[Json] = self._cluster.kubectl.json("get", "pods", "-n", self._namespace, "-l", selector)["items"]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def run_all(self, count: int, seconds: float = 120.0) -> dict[str, Sidecar]:
        """Run pods as they come until ``count`` run and none is being deleted; sidecars by pod name."""
        return dict(until(lambda: self.running(count), f"{count} pods", seconds))

    def running(self, count: int) -> dict[str, Sidecar]:
        """Run pods that do not run yet; sidecars by pod name when there are ``count``, none of them being deleted."""
        pods = self.pods()
        if len(pods) != count or any("deletionTimestamp" in pod["metadata"] for pod in pods):
            return {}
        return {pod["metadata"]["name"]: self.sidecars.get(pod["metadata"]["uid"]) or self.run(pod) for pod in pods}

    def run(self, pod: Json) -> Sidecar:
        """Run one pod."""
        number = next(self._hosts)
        sidecar = Sidecar(pod, f"127.7.{number // 250}.{number % 250 + 1}")
        self._loop.run(self._serve(sidecar))
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

    def silence(self, uid: str) -> None:
        """The sidecar of a pod answers no more."""
        self._loop.run(self._runners.pop(uid).cleanup())

    def revive(self, sidecar: Sidecar) -> None:
        """A silent sidecar answers again."""
        self._loop.run(self._serve(sidecar))

    def lose(self, uid: str) -> None:
        """A pod vanishes, as with its node: no kubelet takes its leave of it."""
        (name,) = (pod["metadata"]["name"] for pod in self.pods() if pod["metadata"]["uid"] == uid)
        self.silence(uid)
        self._cluster.kubectl("delete", "pod", name, "-n", self._namespace, "--force", "--grace-period=0")

    def close(self) -> None:
        """Stop all sidecars."""
        for uid in list(self._runners):
            self.silence(uid)
        self._loop.close()

    async def _serve(self, sidecar: Sidecar) -> None:
        app = web.Application()
        app.add_routes(sidecar.routes())
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, sidecar.address, names.PORT_CONTROL).start()
        self._runners[sidecar.state.uid] = runner


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

    def uids(self) -> set[str]:
        """Engine pods that there are; a successor may have the name of the one before it."""
        return {pod["metadata"]["uid"] for pod in self.kubelet.pods()}

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
