# SPDX-License-Identifier: Apache-2.0
"""``python -m gearshift.engine.host``: the engine container's command."""

from gearshift.api import process1  # noqa: F401 - handles SIGTERM while the rest is imported

# isort: split
import argparse
import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

from aiohttp import web

from gearshift.api import names
from gearshift.engine.host.children import become_subreaper
from gearshift.engine.host.host import Host
from gearshift.engine.host.server import make_app

log = logging.getLogger("gearshift.engine.host")


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gearshift-engine-host", description="Runs the engine processes of a pod.")
    parser.add_argument("--socket", type=Path, default=Path(names.HOST_SOCKET), help="Unix socket for the sidecar")
    parser.add_argument(
        "--grace-seconds",
        type=_seconds,
        default=30.0,
        help="after SIGTERM, how long the sidecar may drain; keep it some seconds below the pod's grace period",
    )
    return parser.parse_args()


async def _bind(runner: web.AppRunner, socket: Path) -> None:
    before = os.umask(0o177)
    try:
        await web.UnixSite(runner, str(socket)).start()
    finally:
        os.umask(before)


async def _main(socket: Path, grace_seconds: float) -> None:
    become_subreaper()
    host = Host(grace_seconds)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, host.reap)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, host.terminate)
    runner = web.AppRunner(make_app(host), access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    await _bind(runner, socket)
    log.info("listening on %s as pid %d", socket, os.getpid())
    try:
        await host.run()
    finally:
        await runner.cleanup()


def main() -> int:
    """Run until terminated; 0 after an orderly end, 2 when the socket can't be made."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="[host] %(levelname)s %(message)s")
    arguments = _arguments()
    try:
        arguments.socket.unlink(missing_ok=True)
        asyncio.run(_main(arguments.socket, arguments.grace_seconds))
        arguments.socket.unlink(missing_ok=True)
    except OSError as error:
        log.error("socket %s: %s", arguments.socket, error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
