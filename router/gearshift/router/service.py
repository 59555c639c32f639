# SPDX-License-Identifier: Apache-2.0
"""A whole router put together: endpoints in, state streams, dispatch, two ports out, and an orderly end."""

import asyncio
import gc
import logging
from dataclasses import dataclass, field
from random import Random
from typing import Final

from aiohttp import ClientSession, DummyCookieJar, TCPConnector, web

from gearshift.api.routerconfig import RouterConfig
from gearshift.router.admission import Admission
from gearshift.router.connection import ClientServer
from gearshift.router.dispatch import Dispatcher
from gearshift.router.endpoints import EndpointSource
from gearshift.router.fleet import Fleet
from gearshift.router.front import Front
from gearshift.router.metrics import Metrics
from gearshift.router.streams import StateStreams
from gearshift.router.tokens import TokenFile
from gearshift.router.upstream import engine_session

log = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 1.0  # how often what depends on time alone is judged again
COLLECT_AFTER: Final = 10_000  # new containers between two collections of the youngest generation
LAME_DUCK_SECONDS: Final = (
    2.0  # a router told to stop still accepts this long: kube-proxy learns of its end as late as that
)


@dataclass
class Router:
    """One router process without its process: `start`, and `stop` once."""

    config: RouterConfig
    source: EndpointSource
    token: TokenFile
    name: str  # unique per router process
    rng: Random = field(default_factory=Random)

    async def start(self, host: str | None, port: int, metrics_port: int) -> None:
        """Listen on both ports and follow the pods. A port of 0 takes a free one."""
        self.fleet = Fleet(self.config.model)
        admission = Admission(self.config)
        self.metrics = Metrics(
            self.fleet, lambda: admission.in_flight, lambda: admission.queued, lambda: self._clients.open
        )
        self._engines = engine_session(self.config.connect_timeout.seconds)
        self._control = ClientSession(connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar())
        self.streams = StateStreams(self.fleet, self._control, self.token, self.name)
        dispatcher = Dispatcher(self.config, self.fleet, self._engines, admission, self.metrics, self.rng)
        self.front = Front(self.config, self.fleet, dispatcher, self.metrics)
        limit, refused = self.config.max_connections, self.front.malformed
        self._clients = ClientServer(self.front.handle, refused, limit)
        self._data = await _listen(self._clients, host, port)
        self._operations = await _listen(ClientServer(self.front.operations, refused, limit), host, metrics_port)
        endless = (self.source.run(self.streams.publish), self._refresh(), self.streams.failed())
        self._tasks = [asyncio.create_task(part) for part in endless]

    @property
    def port(self) -> int:
        """Port of the OpenAI API."""
        return int(self._data.addresses[0][1])

    @property
    def metrics_port(self) -> int:
        """Port of metrics and health."""
        return int(self._operations.addresses[0][1])

    async def failed(self) -> None:
        """Wait until a part that must run for ever ends, and raise what ended it."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self, grace_seconds: float, lame_duck_seconds: float = LAME_DUCK_SECONDS) -> None:
        """Accept for a moment more, then finish what is in flight, for at most ``grace_seconds``, and cut the rest."""
        self.front.closing = True
        await asyncio.sleep(lame_duck_seconds)
        for site in list(self._data.sites):
            await site.stop()
        log.info("finishing the requests in flight")
        await _finish(self._data, grace_seconds)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.streams.close()
        await self._operations.cleanup()
        await self._engines.close()
        await self._control.close()

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            self.fleet.refresh()


def quiet_collector() -> None:
    """Tell the garbage collector that what start-up made lives as long as the process, and to look at the rest less
    often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


async def _listen(server: ClientServer, host: str | None, port: int) -> web.ServerRunner:
    runner = web.ServerRunner(server, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, host, port, backlog=1024).start()
    return runner


async def _finish(runner: web.ServerRunner, grace_seconds: float) -> None:
    server = runner.server
    if server is not None:
        server.pre_shutdown()  # idle connections end now, busy ones with their request
        await server.shutdown(grace_seconds)
    await runner.cleanup()
