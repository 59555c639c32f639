# SPDX-License-Identifier: Apache-2.0
"""Completions that a test meets in their middle, however fast the machine is: it knows when the first token came."""

import http.client
import json
import socket
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from tests.vllm.engines import GREEDY, Client

LONG = 400
"""Tokens of an answer that is met in its middle and then awaited."""
ENDLESS = 3900
"""Tokens of an answer that is met in its middle and then cancelled."""


class Stream:
    """A greedy completion that is read beside the test, so that the test knows when its first token has come."""

    def __init__(self, client: Client, prompt: list[int], tokens: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=client.seconds)
        body = {"prompt": prompt, "max_tokens": tokens, **GREEDY, "stream": True}
        self._connection.request("POST", "/v1/completions", json.dumps(body), client.headers)
        self._begun = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._answer = self._pool.submit(self._read)

    def begun(self) -> "Stream":
        """Wait for the first token."""
        assert self._begun.wait(180), "no token in time"
        return self

    def done(self) -> bool:
        """Whether the last token has come."""
        return self._answer.done()

    def tokens(self) -> list[int]:
        """All tokens, when the last one has come."""
        return self._answer.result()

    def cancel(self) -> None:
        """Hang up, as a client that lost its patience."""
        with suppress(OSError, AttributeError):  # no socket: the answer has ended
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._pool.shutdown()
        self._connection.close()

    def _read(self) -> list[int]:
        try:
            with self._connection.getresponse() as response:
                return [token for line in response for token in self._told(line)]
        finally:
            self._begun.set()

    def _told(self, line: bytes) -> list[int]:
        if not line.startswith(b"data: {"):
            return []
        self._begun.set()
        return [token for choice in json.loads(line[6:])["choices"] for token in choice["token_ids"] or []]


@contextmanager
def streams(client: Client, prompts: Iterable[list[int]], tokens: int) -> Iterator[list[Stream]]:
    """Completions of all prompts at once; whatever is still being made at the end is cancelled."""
    running = [Stream(client, prompt, tokens) for prompt in prompts]
    try:
        yield running
    finally:
        for stream in running:
            stream.cancel()
