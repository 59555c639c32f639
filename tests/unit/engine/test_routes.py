# SPDX-License-Identifier: Apache-2.0
"""Who may ask the engine's routes."""

import subprocess
import sys

import pytest

from gearshift.engine.routes import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_loopback_peers(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["10.0.0.7", "::ffff:10.0.0.7", "fe80::1", "0.0.0.0", "", "localhost", None])
def test_other_peers(host: str | None) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("module", ["plugin", "routes", "host.__main__"])
def test_importing_is_light(module: str) -> None:
    code = (
        f"import sys, gearshift.engine.{module}; print([m for m in ('torch', 'vllm', 'starlette') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
