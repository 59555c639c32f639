# SPDX-License-Identifier: Apache-2.0
"""``python -m gearshift.sidecar``: the agent of an engine pod. A signal ends it and leaves the engines running."""

from gearshift.api import process1  # noqa: F401 - handles SIGTERM while the rest is imported

# isort: split
import asyncio
import logging
import os
import signal
import sys

import uvloop

from gearshift.sidecar.service import serve
from gearshift.sidecar.settings import Settings, SettingsError, read_settings


async def _run(settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    serving = asyncio.ensure_future(serve(settings))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, serving.cancel)
    try:
        await serving
    except asyncio.CancelledError:
        logging.getLogger(__name__).info("told to end; the engines keep running")


def main() -> int:
    """Run the sidecar; 2 when the environment does not describe a pod."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    try:
        settings = read_settings(os.environ)
    except SettingsError as error:
        logging.getLogger(__name__).error("%s", error)
        return 2
    uvloop.run(_run(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
