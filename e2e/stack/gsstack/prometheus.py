# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus on this machine, scraping the pods of a cluster through its routes."""

import contextlib
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from gscluster.kubectl import Kubectl
from gscluster.waiting import wait_for

from gsstack.install import OPERATOR_NAMESPACE, ROOT
from tools.prometheus import render


class Prometheus:
    """A Prometheus process and its discovery; both end with it."""

    def __init__(self, kubectl: Kubectl, folder: Path, address: str, api_server: str, scrape_seconds: int) -> None:
        self.url = f"http://{address}"
        self._kubectl = kubectl
        self._folder = folder
        self._address = address
        self._api_server = api_server
        self._scrape_seconds = scrape_seconds
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start both processes; return when Prometheus is ready."""
        self._folder.mkdir(parents=True, exist_ok=True)
        targets = self._folder / "targets.json"
        targets.write_text("[]")
        config = render.with_interval(render.from_file(render.template(), targets), self._scrape_seconds)
        (self._folder / "prometheus.yaml").write_text(render.dump(config))
        self._write_access()
        access = ["--api-server", self._api_server, "--token-file", "token", "--ca-file", "ca.crt"]
        discover = [sys.executable, "-m", "tools.prometheus.discover", *access, "--targets", "targets.json"]
        self._run("discover", discover + ["--interval", "1"])
        storage = ["--storage.tsdb.path=data", "--storage.tsdb.retention.time=2h"]
        server = ["prometheus", "--config.file=prometheus.yaml", f"--web.listen-address={self._address}", *storage]
        self._run("prometheus", [*server, "--query.lookback-delta=30s", "--log.level=warn"])
        wait_for(self._is_ready, f"Prometheus at {self.url} (log in {self._folder})", timeout_seconds=60)

    def _write_access(self) -> None:
        token = self._kubectl("create", "token", "gearshift-prometheus", "-n", OPERATOR_NAMESPACE, "--duration=24h")
        (self._folder / "token").write_text(token)
        certificate = self._kubectl("get", "configmap", "kube-root-ca.crt", "-o", r"jsonpath={.data.ca\.crt}")
        (self._folder / "ca.crt").write_text(certificate)

    def _run(self, name: str, argv: list[str]) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin:/usr/local/bin"}
            started = subprocess.Popen(argv, cwd=self._folder, env=environment, stdout=log, stderr=log)
        self._processes.append(started)

    def _is_ready(self) -> bool:
        ended = [process for process in self._processes if process.poll() is not None]
        if ended:
            raise RuntimeError(f"{ended[0].args!r} ended with {ended[0].returncode}; see {self._folder}")
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, TimeoutError):
            return False

    def stop(self) -> None:
        """End both processes."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()


@contextlib.contextmanager
def prometheus(
    kubectl: Kubectl, folder: Path, address: str, api_server: str, scrape_seconds: int = 1
) -> Iterator[Prometheus]:
    """A running `Prometheus` within the block."""
    running = Prometheus(kubectl, folder, address, api_server, scrape_seconds)
    try:
        running.start()
        yield running
    finally:
        running.stop()
