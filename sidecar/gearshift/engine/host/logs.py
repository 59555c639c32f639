# SPDX-License-Identifier: Apache-2.0
"""What the engines print: passed on to the container's log, and the last lines kept for the sidecar.

Each engine has a thread of its own, so that a container log that nobody reads stalls an engine at worst, not the host.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Final

LINE_LIMIT_BYTES: Final = 16_384
_STDOUT = threading.Lock()


def relay(name: str, source: IO[bytes], tail: deque[str], finished: Callable[[], None]) -> threading.Thread:
    """Copy ``source`` line by line to stdout, prefixed by ``name``, and into ``tail``; then call ``finished``.

    Lines longer than ``LINE_LIMIT_BYTES`` are broken into several.
    """

    def run() -> None:
        prefix = f"[{name}] ".encode()
        with source:
            for line in iter(lambda: source.readline(LINE_LIMIT_BYTES), b""):
                text = line.rstrip(b"\r\n")
                tail.append(text.decode(errors="replace"))
                _write(prefix + text + b"\n")
        finished()

    thread = threading.Thread(target=run, name=f"log-{name}", daemon=True)
    thread.start()
    return thread


def _write(line: bytes) -> None:
    """Without a reader of the container's log its lines are lost, and nothing else: an engine must not stall by it."""
    with _STDOUT, suppress(OSError):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
