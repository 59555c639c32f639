# SPDX-License-Identifier: Apache-2.0
"""Probes and metrics of a sidecar, on a port of their own and without a token: the kubelet and Prometheus have none."""

from typing import Final

from aiohttp import web

from gearshift.sidecar.agent import Agent
from gearshift.sidecar.metrics import CONTENT_TYPE

_AGENT: Final = web.AppKey("agent", Agent)


def make_probes_app(agent: Agent) -> web.Application:
    """``/startupz`` and ``/livez`` speak of the sidecar, ``/readyz`` of the pod: only the last waits for an engine.

    The engine container starts after the sidecar has started, so a start that waited for an engine would wait for ever.
    """
    app = web.Application()
    app[_AGENT] = agent
    app.router.add_get("/startupz", _alive)
    app.router.add_get("/livez", _alive)
    app.router.add_get("/readyz", _ready)
    app.router.add_get("/metrics", _metrics)
    return app


async def _alive(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _ready(request: web.Request) -> web.Response:
    agent = request.app[_AGENT]
    if agent.ready:
        return web.Response(text="ok\n")
    why = agent.record.message or "the engine has not answered yet"
    return web.Response(status=503, text=f"{agent.record.phase.value}: {why}\n")


async def _metrics(request: web.Request) -> web.Response:
    body = request.app[_AGENT].metrics.exposition()
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})
