# SPDX-License-Identifier: Apache-2.0
"""What engines print must never stop them."""

import io
import os
import sys
from collections import deque
from types import SimpleNamespace

import pytest

from gearshift.engine.host.logs import relay


class BrokenPipe(io.BytesIO):
    """A container log that nobody reads any more."""

    def write(self, _data: object) -> int:
        raise BrokenPipeError


def test_an_engine_goes_on_printing_when_the_container_log_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=BrokenPipe()))
    read, write = os.pipe()
    tail: deque[str] = deque(maxlen=2)
    finished: list[bool] = []
    thread = relay("sim", os.fdopen(read, "rb"), tail, lambda: finished.append(True))
    with os.fdopen(write, "wb") as engine:
        engine.write(b"one\ntwo\nthree\n")
    thread.join(5)
    assert (list(tail), finished) == (["two", "three"], [True])
