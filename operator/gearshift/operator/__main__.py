# SPDX-License-Identifier: Apache-2.0
"""``python -m gearshift.operator``: runs the operator until SIGTERM."""

from gearshift.api import process1  # noqa: F401 - handles SIGTERM while the rest is imported

# isort: split
import sys

import uvloop

from gearshift.operator.app import App
from gearshift.operator.errors import SettingsError
from gearshift.operator.logs import set_up
from gearshift.operator.settings import Settings, parse


async def _run(settings: Settings) -> int:
    return await App(settings).run()


def main() -> int:
    """Exit code of the process."""
    try:
        settings = parse(sys.argv[1:])
        set_up(settings.log_level, settings.log_format)
        return uvloop.run(_run(settings))
    except SettingsError as problem:
        sys.stderr.write(f"gearshift.operator: {problem}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
