# SPDX-License-Identifier: Apache-2.0
"""``python -m gearshift.sim.engine``: start-up as modelled, then serve until SIGTERM or SIGINT."""

import asyncio
import logging
import signal
import socket
import sys
from typing import Final

import aiohttp
from aiohttp import web

from gearshift.sim.engine.faults import SLOW_START_FACTOR, Fault
from gearshift.sim.engine.kvtransfer import KvTransfers, kv_routes
from gearshift.sim.engine.options import Options, parse_options
from gearshift.sim.engine.server import Server
from gearshift.sim.engine.service import Service

_LOG: Final = logging.getLogger("gearshift.sim.engine")
_SHUTDOWN_SECONDS: Final = 0.5  # streams are cut then: who wants them finished drains the pod first
_WILDCARDS: Final = {"0.0.0.0", "::", ""}  # noqa: S104


async def serve(options: Options) -> None:
    """Run one engine until a signal to stop. Nothing listens before the start-up time has passed, as with vLLM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    slow = SLOW_START_FACTOR if Fault.SLOW_START in options.faults else 1
    if await _is_set_within(stop, options.startup_seconds * slow):
        return
    api_socket = _listen(options.host, options.port)
    side_socket = _listen(options.host, options.side_channel_port) if options.side_channel_port else None
    port = api_socket.getsockname()[1]
    host = options.side_channel_host or _reachable_address(options.host)
    service = Service(options)
    async with aiohttp.ClientSession() as session:
        transfers = KvTransfers(service, host, options.side_channel_port or port, session)
        app = Server(service, transfers).application()
        runners = [web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)]
        if side_socket is not None:
            side = web.Application()
            side.add_routes(kv_routes(service))
            runners.append(web.AppRunner(side, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS))
        for runner, listener in zip(runners, (api_socket, side_socket), strict=False):
            assert listener is not None
            await runner.setup()
            await web.SockSite(runner, listener).start()
        _LOG.info("serving %s on port %d: %s", options.model, port, service.state().model_dump_json())
        await stop.wait()
        for runner in runners:
            await runner.cleanup()


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024, reuse_port=False)


def _reachable_address(host: str) -> str:
    """``host``, or for a wildcard the address by which this machine goes out (no packet is sent)."""
    if host not in _WILDCARDS:
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def main() -> int:
    """Entry point; returns the exit status."""
    options = parse_options(sys.argv[1:])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    try:
        asyncio.run(serve(options))
    except OSError as error:
        _LOG.error("cannot listen on %s port %d: %s", options.host, options.port, error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
