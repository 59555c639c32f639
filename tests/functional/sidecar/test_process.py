# SPDX-License-Identifier: Apache-2.0
"""``python -m gearshift.sidecar`` as a process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_process_without_a_configuration_says_what_is_missing() -> None:
    sources = os.pathsep.join(str(ROOT / part) for part in ("core", "sidecar"))
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("GEARSHIFT", "POD_"))}
    done = subprocess.run(
        [sys.executable, "-m", "gearshift.sidecar"],
        env={**environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "environment variable GEARSHIFT_POD_CONFIG is not set" in done.stderr
