# SPDX-License-Identifier: Apache-2.0
"""A Prometheus whose answers a test chooses for each namespace: right ones, and those of a broken or lagging one."""

import http.server
import json
import socket
import struct
import threading
import time
import urllib.parse
from typing import Any

FAULTS = ("Away", "Page", "Error", "WrongType", "NotANumber", "Stale")
_PAGE = b"<html><body>Sign in to continue</body></html>"


class Prometheus:
    """Answers instant queries by the first known series that is in them."""

    def __init__(self, values: dict[str, float]) -> None:
        self.values = values
        self.faults: dict[str, str] = {}  # namespace -> what is wrong with the answers about it
        self.asked: dict[str, int] = {}  # namespace -> queries
        world = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                (query,) = form["query"]
                answer = world.answer(query)
                if answer is None:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
                    return
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(answer[1])))
                self.end_headers()
                self.wfile.write(answer[1])

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, query: str) -> tuple[int, bytes] | None:
        """Status and body; None when the connection breaks."""
        namespace = query.split('namespace="', 1)[1].split('"', 1)[0]
        self.asked[namespace] = self.asked.get(namespace, 0) + 1
        fault = self.faults.get(namespace, "")
        value = next((value for series, value in self.values.items() if series in query), 0.0)
        at = time.time()
        sample = {"metric": {}, "value": [at, str(value)]}
        stale = {"metric": {}, "value": [at - 600, str(value)]}
        answers: dict[str, tuple[int, bytes] | None] = {
            "": (200, _vector(sample)),
            "Away": None,
            "Page": (200, _PAGE),
            "Error": (500, json.dumps({"status": "error", "error": "out of memory"}).encode()),
            "WrongType": (
                200,
                json.dumps({"status": "success", "data": {"resultType": "vector", "result": 5}}).encode(),
            ),
            "NotANumber": (200, _vector({"metric": {}, "value": [at, "NaN"]})),
            "Stale": (200, _vector(stale)),
        }
        return answers[fault]


def _vector(sample: dict[str, Any]) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": [sample]}}).encode()
