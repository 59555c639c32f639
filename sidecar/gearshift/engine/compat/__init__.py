# SPDX-License-Identifier: Apache-2.0
"""Everything that depends on the minor version of vLLM: one module each, chosen once by the version that runs.

Nothing else in the package touches an attribute of vLLM's scheduler, core or client that upstream does not promise.
"""

import re
from importlib import import_module
from typing import Final

from gearshift.engine.compat.base import Compat

SUPPORTED: Final = {"0.26": "gearshift.engine.compat.v0_26", "0.32": "gearshift.engine.compat.v0_32"}


class UnsupportedVersionError(RuntimeError):
    """This vLLM was never tried with gearshift."""


def select(version: str) -> Compat:
    """The module for vLLM ``version``, such as ``0.32.0+cpu``.

    Raises:
        UnsupportedVersionError: its minor is not supported.
    """
    found = re.match(r"(\d+\.\d+)(?:\D|$)", version)
    module = SUPPORTED.get(found[1]) if found else None
    if module is None:
        known = ", ".join(SUPPORTED)
        raise UnsupportedVersionError(f"vLLM {version} is not supported by this gearshift, only {known} (any patch)")
    compat: Compat = import_module(module).COMPAT
    return compat
