# SPDX-License-Identifier: Apache-2.0
"""Where set-up reads its inputs and where it puts its results."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout that this code belongs to."""

SOURCE_ROOTS = ("core", "operator", "sidecar", "router", "cli")
"""Folders of the checkout that each hold a portion of the `gearshift` namespace."""


def cache() -> Path:
    """The folder for results, shared by all checkouts: `$GEARSHIFT_CACHE`, by default `/var/cache/gearshift`."""
    return Path(os.environ.get("GEARSHIFT_CACHE", "/var/cache/gearshift"))


def python_path() -> str:
    """The value of `PYTHONPATH` with which `import gearshift` finds this checkout."""
    return os.pathsep.join(str(ROOT / name) for name in SOURCE_ROOTS)
