# SPDX-License-Identifier: Apache-2.0
"""``python -m gearshift.operator``: runs the operator until SIGTERM."""

from gearshift.api import process1  # noqa: F401 - handles SIGTERM while the rest is imported

# isort: split
import gc
import sys

import uvloop

from gearshift.operator.app import App
from gearshift.operator.errors import SettingsError
from gearshift.operator.leaving import leave_after
from gearshift.operator.logs import set_up
from gearshift.operator.settings import parse

_YOUNG_OBJECTS = 50_000
"""A page of 100 pods is some 25,000 objects, none of them garbage: a collector that looks for cycles every 700 objects
takes twice the time of reading the page."""


def main() -> int:
    """Exit code of the process."""
    gc.freeze()  # what has been imported stays
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)
    try:
        settings = parse(sys.argv[1:])
        set_up(settings.log_level, settings.log_format)
        return uvloop.run(leave_after(App(settings).run()))
    except SettingsError as problem:
        sys.stderr.write(f"gearshift.operator: {problem}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
