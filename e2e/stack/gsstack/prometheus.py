# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus beside a cluster, scraping its pods through this machine's routes; it ends with the cluster."""

import sys
import urllib.error
import urllib.request
from pathlib import Path

from gscluster.cluster import Cluster
from gscluster.processes import ProcessTable
from gscluster.waiting import wait_for
from gsstack.install import OPERATOR_NAMESPACE, ROOT
from tools.prometheus import render

SERVER, DISCOVERY = "prometheus", "discovery"
PORT = 9090


class Prometheus:
    """Prometheus and its discovery, in the control group of a cluster and on its address of this machine."""

    def __init__(self, cluster: Cluster, *, scrape_seconds: int = 1) -> None:
        self.address = f"{cluster.addresses.machine}:{PORT}"
        self.url = f"http://{self.address}"
        self.folder = cluster.folder / "prometheus"
        self.processes = ProcessTable(self.folder, cluster.cgroup.system)
        self.scrape_seconds = scrape_seconds
        self._cluster = cluster

    def start(self) -> None:
        """Start both; return when Prometheus is ready. Nothing happens when it runs."""
        if self.processes.is_running(SERVER):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        targets = self.folder / "targets.json"
        targets.write_text("[]")
        config = render.with_interval(render.from_file(render.template(), targets), self.scrape_seconds)
        (self.folder / "prometheus.yaml").write_text(render.dump(config))
        self._write_access()
        self.processes.start(DISCOVERY, self._discovery(targets))
        self.processes.start(SERVER, self._server())
        wait_for(self._is_ready, f"Prometheus at {self.url} (logs: {self.processes.logs_folder})", timeout_seconds=60)

    def _write_access(self) -> None:
        kubectl = self._cluster.kubectl
        token = kubectl("create", "token", "gearshift-prometheus", "-n", OPERATOR_NAMESPACE, "--duration=24h")
        (self.folder / "token").write_text(token)
        certificate = kubectl("get", "configmap", "kube-root-ca.crt", "-o", r"jsonpath={.data.ca\.crt}")
        (self.folder / "ca.crt").write_text(certificate)

    def _discovery(self, targets: Path) -> list[str | Path]:
        server = f"https://{self._cluster.addresses.control_plane}:6443"
        access: list[str | Path] = ["--token-file", self.folder / "token", "--ca-file", self.folder / "ca.crt"]
        run = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tools.prometheus.discover", "--api-server", server]
        return [*run, *access, "--targets", targets, "--interval", "1"]

    def _server(self) -> list[str | Path]:
        return [
            "prometheus",
            f"--config.file={self.folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            "--storage.tsdb.retention.time=2h",
            f"--web.listen-address={self.address}",
            "--log.level=warn",
        ]

    def _is_ready(self) -> bool:
        self.processes.process_id(SERVER)
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, TimeoutError):
            return False

    def stop(self) -> None:
        """End both."""
        for name in self.processes.names():
            self.processes.stop(name, grace_seconds=20)
