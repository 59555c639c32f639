# SPDX-License-Identifier: Apache-2.0
"""Puts a sidecar together from its settings and runs it: clients, agent, and the two servers."""

import asyncio
import logging
import math
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import aiohttp
from aiohttp import web

from gearshift.api import names
from gearshift.sidecar.agent import Agent
from gearshift.sidecar.auth import Authenticator
from gearshift.sidecar.control import make_control_app
from gearshift.sidecar.engines import plan_engines
from gearshift.sidecar.host_client import HostClient
from gearshift.sidecar.host_watch import HostWatch
from gearshift.sidecar.kube import TokenReviewer
from gearshift.sidecar.ledger import Record, new_record, restore
from gearshift.sidecar.metrics import Metrics
from gearshift.sidecar.pod import Pod
from gearshift.sidecar.probes import make_probes_app
from gearshift.sidecar.residents import Residents
from gearshift.sidecar.routers import Routers
from gearshift.sidecar.settings import Settings
from gearshift.sidecar.state_file import read_record

log = logging.getLogger(__name__)
REVIEW_SECONDS: Final = 2.0
IDLE_SECONDS: Final = 75.0
"""How long a connection may be without a whole request."""
ENGINE_KEEPALIVE_SECONDS: Final = 4.0
"""Below the 5 s after which vLLM closes an idle connection: an order sent at that moment would count as failed."""


async def serve(settings: Settings) -> None:
    """Run the sidecar until cancelled; a defect of the agent ends it with an exception."""
    async with AsyncExitStack() as stack:
        agent, restarted = await _assemble(settings, stack)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        reviewer = TokenReviewer(session, settings.api_server, names.TOKEN_AUDIENCE, REVIEW_SECONDS)
        await stack.enter_async_context(_listen(make_probes_app(agent), settings.bind, settings.ports.metrics))
        running = asyncio.ensure_future(agent.run())
        stack.push_async_callback(_stop, running)
        if restarted:
            agent.pod.routers.expect_return(math.inf)
            await _settle(agent, running, settings.timings.settle)
            agent.pod.routers.expect_return(time.monotonic() + settings.timings.router_linger)
        control = make_control_app(agent, Authenticator(reviewer.review, time.time))
        await stack.enter_async_context(_listen(control, settings.bind, settings.ports.control))
        log.info("pod %s serves its control API on port %d", settings.pod.name, settings.ports.control)
        await running


async def _assemble(settings: Settings, stack: AsyncExitStack) -> tuple[Agent, bool]:
    """The agent, and whether an earlier sidecar of this pod left a record."""
    connector = aiohttp.TCPConnector(keepalive_timeout=ENGINE_KEEPALIVE_SECONDS)
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
    host = HostClient(settings.host_socket, settings.timings.engine_call)
    stack.push_async_callback(host.close)
    metrics = Metrics()
    found = read_record(settings.state_file, settings.pod.uid)
    record = _first_record(settings) if found is None else restore(found, time.time())
    watch = HostWatch(host, settings.timings)
    residents = Residents(plan_engines(settings, sorted(os.sched_getaffinity(0))), settings, session, host, watch)
    pod = Pod(
        settings=settings,
        residents=residents,
        routers=Routers(settings.timings.router_linger),
        host=host,
        observer=metrics,
    )
    return Agent(pod, watch, record, metrics), found is not None


def _first_record(settings: Settings) -> Record:
    config = settings.config
    threshold = config.shift_threshold_tokens
    return new_record(settings.pod.uid, config.initial_role, config.initial_layout, time.time(), threshold)


async def _settle(agent: Agent, running: asyncio.Future[None], seconds: float) -> None:
    """Give a restarted sidecar the time to find its engine, before it says to routers that it does not serve."""
    settled = asyncio.ensure_future(agent.settled.wait())
    either: list[asyncio.Future[Any]] = [settled, running]
    await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    settled.cancel()


async def _stop(running: asyncio.Future[None]) -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def _listen(app: web.Application, address: str, port: int) -> AsyncIterator[None]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, keepalive_timeout=IDLE_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
        yield
    finally:
        await runner.cleanup()
