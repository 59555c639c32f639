# SPDX-License-Identifier: Apache-2.0
"""HTTP application of the simulated engine: vLLM's OpenAI routes, its probes and its metrics."""

import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from secrets import token_hex
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from gearshift.sim.engine.chunks import StreamWriter, compact, full_answer
from gearshift.sim.engine.control import Control
from gearshift.sim.engine.errors import ApiError
from gearshift.sim.engine.kvtransfer import KvTransfers, kv_routes
from gearshift.sim.engine.protocol import Job, Limits, parse_chat, parse_completion
from gearshift.sim.engine.requests import Request, RequestState
from gearshift.sim.engine.service import Service

VLLM_VERSION: Final = "0.26.0"  # whose interfaces this engine shows
MAX_BODY_BYTES: Final = 32 << 20
_LOG: Final = logging.getLogger(__name__)


class Server:
    """Handlers of one engine."""

    def __init__(self, service: Service, transfers: KvTransfers) -> None:
        self._service = service
        self._transfers = transfers
        self._started = int(time.time())
        self._registry = CollectorRegistry()
        self._registry.register(service.metrics)
        ProcessCollector(registry=self._registry)

    def application(self) -> web.Application:
        """The application, with the control routes and those for other engines."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.add_routes(
            [
                web.post("/v1/completions", self._completions),
                web.post("/v1/chat/completions", self._chat),
                web.get("/v1/models", self._models),
                web.get("/health", self._health),
                web.get("/ping", self._health),
                web.get("/version", self._version),
                web.get("/metrics", self._metrics),
                *Control(self._service).routes(),
                *kv_routes(self._service),
            ]
        )
        return app

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": VLLM_VERSION})

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _models(self, _: web.Request) -> web.Response:
        limits = self._service.limits
        card = {
            "id": limits.model,
            "object": "model",
            "created": self._started,
            "owned_by": "vllm",
            "root": limits.model,
            "parent": None,
            "max_model_len": limits.max_model_len_tokens,
            "permission": [],
        }
        return web.json_response({"object": "list", "data": [card]})

    async def _completions(self, http: web.Request) -> web.StreamResponse:
        return await self._generate(http, parse_completion, "cmpl")

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        return await self._generate(http, parse_chat, "chatcmpl")

    async def _generate(
        self, http: web.Request, parse: Callable[[bytes, Limits], Job], prefix: str
    ) -> web.StreamResponse:
        arrived_at = self._service.runner.now()
        try:
            job = parse(await _read(http), self._service.limits)
            if not self._service.answers_completions:
                raise ApiError(
                    "EngineCore encountered an issue (a fault of the rehearsal).", HTTPStatus.INTERNAL_SERVER_ERROR
                )
        except ApiError as error:
            return error.response()
        response_id = f"{prefix}-{http.headers.get('X-Request-Id') or token_hex(16)}"
        request = self._service.request_of(job, f"{response_id}-0-{token_hex(4)}", arrived_at)
        await self._transfers.fetch(request, job.kv_transfer_params)
        self._service.runner.submit(request)
        try:
            if job.stream:
                return await self._stream(http, job, request, response_id)
            return await self._answer(job, request, response_id)
        finally:
            self._service.runner.abort(request)

    async def _answer(self, job: Job, request: Request, response_id: str) -> web.Response:
        runner, model = self._service.runner, self._service.limits.model
        while not request.done:
            await runner.progress(request, job.output_tokens)
        if request.state is RequestState.ABORTED:
            return ApiError("The request was aborted.", HTTPStatus.INTERNAL_SERVER_ERROR).response()
        offer = self._transfers.offer(request) if request.keep_kv else None
        answer = full_answer(job, request, response_id, model, int(time.time()), offer)
        return web.json_response(answer, dumps=compact)

    async def _stream(self, http: web.Request, job: Job, request: Request, response_id: str) -> web.StreamResponse:
        writer = StreamWriter(job, request, response_id, self._service.limits.model, int(time.time()))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(http)
        sent = 0
        while not request.done or sent < request.generated_tokens:
            await self._service.runner.progress(request, sent)
            start, sent = sent, request.generated_tokens
            chunks = writer.tokens(start, sent)
            await response.write(chunks if start else writer.opening() + chunks)
        await response.write(writer.closing())
        await response.write_eof()
        return response


async def _read(http: web.Request) -> bytes:
    too_large = ApiError(f"The body is larger than {MAX_BODY_BYTES} bytes.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    if http.content_length is not None and http.content_length > MAX_BODY_BYTES:
        raise too_large
    try:
        return await http.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large from None
