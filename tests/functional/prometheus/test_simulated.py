# SPDX-License-Identifier: Apache-2.0
"""The Simulated engine exports every series that the policy's queries read."""

import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

from gearshift.policy.queries import Scope, queries
from gscluster.waiting import wait_for
from tests.functional.prometheus.harness import DEADLINE_SECONDS

pytestmark = pytest.mark.functional


@pytest.fixture
def address() -> Iterator[str]:
    """A running engine."""
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    command = [sys.executable, "-m", "gearshift.sim.engine", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen([*command, "--startup", "0s"], stderr=subprocess.PIPE)
    yield f"127.0.0.1:{port}"
    process.terminate()
    process.communicate(timeout=10)


def test_every_series_of_every_query_is_exported(address: str) -> None:
    """Also before the first request, so that an idle engine is known to be idle."""
    pages: list[str] = []

    def answered() -> bool:
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=2) as answer:
                pages.append(answer.read().decode())
        except OSError:
            return False
        return True

    wait_for(answered, "the engine to answer", timeout_seconds=DEADLINE_SECONDS)
    exported = set(re.findall(r"^(vllm:\w+)", pages[0], re.MULTILINE))
    read = {name for query in queries(Scope("n", ["p"], 30)).values() for name in re.findall(r"vllm:\w+", query)}
    assert len(read) == 10
    assert read <= exported
    assert 'reason="capacity"' in pages[0]
