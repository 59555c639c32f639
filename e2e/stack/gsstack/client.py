# SPDX-License-Identifier: Apache-2.0
"""An application behind the OpenAI API: one request at a time, streamed or not."""

import contextlib
import http.client
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answer:
    """What came back for one request."""

    status: int
    text: str
    seconds: float
    seconds_to_first_token: float | None = None


@contextlib.contextmanager
def _open(url: str, path: str, body: dict[str, Any], timeout_seconds: float) -> Iterator[http.client.HTTPResponse]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_seconds)
    with contextlib.closing(connection):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        yield connection.getresponse()


def complete(url: str, prompt: str, *, model: str, max_tokens: int = 24, timeout_seconds: float = 120) -> Answer:
    """Greedy completion of a prompt, not streamed."""
    begin = time.monotonic()
    body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
    with _open(url, "/v1/completions", body, timeout_seconds) as response:
        content = response.read().decode()
    text = json.loads(content)["choices"][0]["text"] if response.status == http.client.OK else content
    return Answer(response.status, text, time.monotonic() - begin)


def _deltas(lines: Iterator[bytes]) -> Iterator[str]:
    for line in lines:
        if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
            for choice in json.loads(line[len(b"data: ") :])["choices"]:
                yield choice["delta"].get("content") or ""


def chat(
    url: str,
    content: str,
    *,
    model: str,
    max_tokens: int = 24,
    timeout_seconds: float = 120,
    on_text: Callable[[str], None] = lambda _: None,
) -> Answer:
    """Greedy chat completion, streamed; ``on_text`` gets each piece as it comes."""
    begin = time.monotonic()
    messages = [{"role": "user", "content": content}]
    body = {"model": model, "messages": messages, "max_tokens": max_tokens, "temperature": 0, "stream": True}
    first: float | None = None
    pieces: list[str] = []
    with _open(url, "/v1/chat/completions", body, timeout_seconds) as response:
        if response.status != http.client.OK:
            return Answer(response.status, response.read().decode(), time.monotonic() - begin)
        for piece in _deltas(iter(response.readline, b"")):
            if piece and first is None:
                first = time.monotonic() - begin
            on_text(piece)
            pieces.append(piece)
    return Answer(response.status, "".join(pieces), time.monotonic() - begin, first)
