# SPDX-License-Identifier: Apache-2.0
"""The installed vLLM has every name that its compat module relies on; a failure names the one that broke."""

import re
import subprocess

from gearshift.engine.compat import select
from gearshift.engine.compat.symbols import broken
from tests.vllm.engines import Environment


def test_the_installed_version_keeps_the_contract(environment: Environment) -> None:
    found = re.search(r"^__version__ = .*'(.+)'$", (environment.vllm / "_version.py").read_text(), re.MULTILINE)
    assert found
    assert broken(environment.vllm, select(found[1]).symbols) == []


def test_an_unknown_version_stops_the_start(environment: Environment) -> None:
    code = "import vllm; vllm.__version__ = '0.29.1'; from gearshift.engine.plugin import register; register()"
    done = subprocess.run(
        [environment.python, "-c", code],
        env={"PATH": "/usr/bin:/bin", "HOME": str(environment.scratch), "PYTHONPATH": str(environment.code)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "vLLM 0.29.1 is not supported by this gearshift, only 0.26, 0.32 (any patch)" in done.stderr
