# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus on loopback, and engines that export what a test says."""

import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gearshift.policy.queries import Scope, queries
from gearshift.policy.readings import reading
from gearshift.policy.snapshot import Reading, Signal
from gscluster.waiting import wait_for
from tools.prometheus import render

SCRAPE_SECONDS = 1
DEADLINE_SECONDS = 120.0
Page = Callable[[float], str]  # seconds since the exporter began -> exposition


class Exporter:
    """Serves ``/metrics`` on a free port; ``page`` may be replaced, None refuses to answer."""

    def __init__(self, page: Page | None) -> None:
        self.page = page
        self._began = time.monotonic()
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if exporter.page is None or self.path != "/metrics":
                    self.send_error(503)
                    return
                body = exporter.page(exporter.seconds).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def seconds(self) -> float:
        """Since it began: what `page` is asked for."""
        return time.monotonic() - self._began

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class Prometheus:
    """Debian's Prometheus with the shipped configuration and a file of targets."""

    def __init__(self, folder: Path, targets: Path) -> None:
        binary = shutil.which("prometheus")
        if binary is None:
            pytest.skip("needs the package prometheus")
        config = render.with_interval(render.from_file(render.template(), targets), SCRAPE_SECONDS)
        file = folder / "prometheus.yaml"
        file.write_text(render.dump(config))
        with socket.create_server(("127.0.0.1", 0)) as chosen:
            address = f"127.0.0.1:{chosen.getsockname()[1]}"
        self.url = f"http://{address}"
        self.log = folder / "prometheus.log"
        command = [
            binary,
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
        ]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        wait_for(self._ready, "Prometheus to be ready", timeout_seconds=DEADLINE_SECONDS)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _ready(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def ask(self, query: str, at: float | None = None) -> Any:
        """Answer of ``/api/v1/query``."""
        when = time.time() if at is None else at
        form = urllib.parse.urlencode({"query": query, "time": f"{when:.3f}"}).encode()
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query", data=form, timeout=5) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            return json.load(refusal)

    def read(self, scope: Scope) -> dict[Signal, Reading]:
        """Readings of every signal, now."""
        now = time.time()
        return {
            signal: reading(signal, self.ask(query, now), query, now, scope.window_seconds)
            for signal, query in queries(scope).items()
        }

    def labels(self, query: str) -> list[dict[str, str]]:
        """Labels of the series that a query answers with."""
        return [entry["metric"] for entry in self.ask(query)["data"]["result"]]
