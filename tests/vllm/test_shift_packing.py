# SPDX-License-Identifier: Apache-2.0
"""Heads come back from the exchange where they belong, for every way in which ranks, query and KV heads can divide."""

import os
import subprocess

from tests.vllm.engines import Environment
from tools.setup.paths import ROOT


def test_packing_and_unpacking_lose_no_head(environment: Environment) -> None:
    path = os.pathsep.join([str(environment.code), str(ROOT)])
    done = subprocess.run(
        [environment.python, "-m", "tests.vllm.shift_packing"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(environment.scratch), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.splitlines() == ["tried 135"], done.stdout[-2000:] + done.stderr[-2000:]
