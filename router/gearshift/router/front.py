# SPDX-License-Identifier: Apache-2.0
"""The HTTP face of the router: which path does what, and every failure as an OpenAI error.

It sits directly on aiohttp's server, below its application layer: a table of five paths needs no resolver and no
middleware per request.
"""

import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import unquote

from aiohttp import web

from gearshift.api.routerconfig import RouterConfig
from gearshift.router.connection import Connection
from gearshift.router.dispatch import Dispatcher
from gearshift.router.errors import RATE_LIMIT, ApiError, internal, invalid, quoted
from gearshift.router.fleet import Fleet
from gearshift.router.metrics import CLIENT_GONE, CONTENT_TYPE, Metrics

log = logging.getLogger(__name__)

Handler = Callable[[web.BaseRequest, str], Awaitable[web.StreamResponse]]

JSON: Final = {"Content-Type": "application/json"}


class Front:
    """Answers requests; `handle` is the handler of a low-level aiohttp server."""

    def __init__(self, config: RouterConfig, fleet: Fleet, dispatcher: Dispatcher, metrics: Metrics) -> None:
        self.closing = False  # finish what is here, on connections that end with it
        self._config = config
        self._fleet = fleet
        self._metrics = metrics
        self._started_at = int(time.time())
        self._routes: dict[str, dict[str, Handler]] = {
            "/v1/completions": {"POST": dispatcher.completion},
            "/v1/chat/completions": {"POST": dispatcher.completion},
            "/v1/models": {"GET": self._models},
            "/health": {"GET": self._health},
            "/metrics": {"GET": self._page},
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request of the data port."""
        path = request.raw_path.partition("?")[0]
        methods = self._routes.get(path)
        route, code, started = path if methods else "other", CLIENT_GONE, time.monotonic()
        try:
            handler = self._handler(request, path, methods)
            if _surplus(request) and path != "/health":
                raise self._too_many_connections()
            response = await handler(request, path)
            code = response.status
        except ApiError as error:
            response, code = error.response(), error.status
        except ConnectionError:  # to the client: those to engines are ApiErrors by now
            raise
        except Exception:
            log.exception("unexpected failure of %s %s", request.method, path)
            response, code = internal().response(), 500
        finally:
            self._metrics.answered(route, code, time.monotonic() - started)
        if (self.closing or _surplus(request)) and not response.prepared:
            response.force_close()
        return response

    async def operations(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request of the metrics port."""
        path = request.raw_path.partition("?")[0]
        try:
            if path not in ("/metrics", "/health"):
                raise _no_path(path)
            return await _method(request, self._routes[path])(request, path)
        except ApiError as error:
            return error.response()

    def malformed(self, code: int) -> None:
        """Count a request that was refused before it could be parsed."""
        self._metrics.answered("other", code, 0.0)

    def _handler(self, request: web.BaseRequest, path: str, methods: dict[str, Handler] | None) -> Handler:
        if request._message.upgrade:  # noqa: SLF001 - aiohttp tells it nowhere else
            raise invalid("Upgrading the connection is not supported.", code="upgrade_not_supported")
        if methods is not None:
            return _method(request, methods)
        if not path.startswith("/"):
            raise invalid(f"The request target {quoted(path)} must be a path of this server.", code="invalid_target")
        if path.startswith("/v1/models/"):
            return _method(request, {"GET": self._model})
        raise _no_path(path)

    def _too_many_connections(self) -> ApiError:
        service = f"{self._config.namespace}/{self._config.service}"
        return ApiError(
            429,
            RATE_LIMIT,
            f"The router of InferenceService {service} has {self._config.max_connections} connections already.",
            code="too_many_connections",
            retry_after_seconds=self._config.retry_after.seconds,
            close=True,
        )

    async def _models(self, _request: web.BaseRequest, _path: str) -> web.StreamResponse:
        cards = [self._card(model) for model in self._fleet.models()]
        return web.Response(body=json.dumps({"object": "list", "data": cards}).encode(), headers=JSON)

    async def _model(self, _request: web.BaseRequest, path: str) -> web.StreamResponse:
        model = unquote(path.removeprefix("/v1/models/"))
        if not self._fleet.knows(model):
            raise invalid(
                f"The model {quoted(model)} does not exist.", status=404, code="model_not_found", param="model"
            )
        return web.Response(body=json.dumps(self._card(model)).encode(), headers=JSON)

    def _card(self, model: str) -> dict[str, object]:
        return {"id": model, "object": "model", "created": self._started_at, "owned_by": "gearshift"}

    async def _health(self, _request: web.BaseRequest, _path: str) -> web.StreamResponse:
        """200 while the router lives: having no pod is no fault of the router, and a restart would not cure it."""
        pods = list(self._fleet.pods.values())
        body = {
            "status": "closing" if self.closing else "ok",
            "service": f"{self._config.namespace}/{self._config.service}",
            "pods": len(pods),
            "admitting": sum(pod.admitting for pod in pods),
        }
        return web.Response(body=json.dumps(body).encode(), headers=JSON)

    async def _page(self, _request: web.BaseRequest, _path: str) -> web.StreamResponse:
        return web.Response(body=self._metrics.page(), headers={"Content-Type": CONTENT_TYPE})


def _surplus(request: web.BaseRequest) -> bool:
    """Whether the connection of a request is one too many."""
    return isinstance(request.protocol, Connection) and request.protocol.surplus


def _method(request: web.BaseRequest, methods: dict[str, Handler]) -> Handler:
    handler = methods.get(request.method)
    if handler is None:
        raise invalid(
            f"Method {quoted(request.method)} is not allowed for {quoted(request.raw_path)}; use {', '.join(methods)}.",
            status=405,
            code="method_not_allowed",
            allow=", ".join(methods),
        )
    return handler


def _no_path(path: str) -> ApiError:
    return invalid(f"There is no {quoted(path)} here.", status=404, code="not_found")
