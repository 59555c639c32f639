# SPDX-License-Identifier: Apache-2.0
"""From a completion request to the pod, or the pair of pods, that serves it: choose, wait if none admits, try, try
elsewhere.
"""

import asyncio
import logging
import time
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from aiohttp import ClientSession, web

from gearshift.api.routerconfig import RouterConfig
from gearshift.router.admission import Admission
from gearshift.router.body import read_body
from gearshift.router.errors import UPSTREAM, ApiError
from gearshift.router.fleet import Fleet, Pod
from gearshift.router.headers import request_headers
from gearshift.router.metrics import Metrics
from gearshift.router.parsing import ParsedRequest, parse_request, unknown_model
from gearshift.router.split import decode_body, prefill_body, splittable, transfer_params
from gearshift.router.upstream import AttemptError, Reason, is_short, read, relay_stream, relayed, send
from gearshift.scheduling.choose import Path, Route, Split, Whole, choose_route

log = logging.getLogger(__name__)

ATTEMPTS: Final = 3
AGAIN_SECONDS: Final = 0.05  # pause before a pod that failed is tried again because there's no other
JSON_HEADERS: Final = {"content-type": "application/json"}


@dataclass(slots=True)
class Exchange:
    """One request on its way."""

    request: web.BaseRequest
    path: str
    parsed: ParsedRequest
    headers: dict[str, str]
    read_at: float  # monotonic time at which the request was read


class Hold:
    """A place of a request on a pod, from the choice on. That on a prefill pod ends with the first byte of the decode
    pod.
    """

    __slots__ = ("_held", "_pod")

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self._held = True
        pod.begin()

    def release(self) -> None:
        """Let go; harmless when done before."""
        if self._held:
            self._held = False
            self._pod.end()


class Dispatcher:
    """Serves completion requests with the pods of a fleet."""

    def __init__(
        self,
        config: RouterConfig,
        fleet: Fleet,
        session: ClientSession,
        admission: Admission,
        metrics: Metrics,
        rng: Random,
    ) -> None:
        self._limit_bytes = config.max_body_bytes
        self._fleet = fleet
        self._session = session
        self._admission = admission
        self._metrics = metrics
        self._rng = rng

    async def completion(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        """Serve one request of ``/v1/completions`` or ``/v1/chat/completions``.

        Raises:
            ApiError: it can't be served.
        """
        self._admission.enter()
        try:
            parsed = parse_request(await read_body(request, self._limit_bytes))
            if not self._fleet.knows(parsed.model):
                raise unknown_model(parsed.model, self._fleet.models())
            headers = request_headers(request.raw_headers)
            return await self._serve(Exchange(request, path, parsed, headers, time.monotonic()))
        finally:
            self._admission.leave()

    async def _serve(self, exchange: Exchange) -> web.StreamResponse:
        failed: list[AttemptError] = []
        while len(failed) < ATTEMPTS:
            route = self._choose(exchange, failed) or await self._wait(exchange, failed)
            try:
                if isinstance(route, Split):
                    return await self._split(exchange, route)
                return await self._whole(exchange, route)
            except AttemptError as error:
                self._note(error)
                failed.append(error)
        named = dict.fromkeys(f"pod {error.pod.endpoint.name}: {error.reason.value}" for error in failed)
        raise self._admission.unavailable("; ".join(named))

    def _note(self, error: AttemptError) -> None:
        log.warning("an attempt failed before the first byte: %s", error)
        self._metrics.retries.labels(error.reason.value).inc()
        if error.reason is Reason.CONNECT:
            self._fleet.suspect(error.pod)

    async def _wait(self, exchange: Exchange, failed: list[AttemptError]) -> Route[Pod]:
        """A route when there's none now: a failed pod once more, else the first pod that admits again."""
        if failed:
            await asyncio.sleep(AGAIN_SECONDS * len(failed))
        again = self._choose(exchange, [])
        return again or await self._admission.wait_for(exchange.parsed.model, lambda: self._choose(exchange, []))

    def _choose(self, exchange: Exchange, failed: list[AttemptError]) -> Route[Pod] | None:
        pods = self._fleet.serving(exchange.parsed.model, [error.pod for error in failed])
        return choose_route(pods, self._rng, lambda: splittable(exchange.parsed.document))

    async def _whole(self, exchange: Exchange, route: Whole[Pod]) -> web.StreamResponse:
        pod = route.pod
        if route.path is not Path.WHOLE:
            self._metrics.paths.labels(route.path.value).inc()
        pod.begin()
        try:
            return await self._answer(exchange, pod, exchange.parsed.raw, None)
        finally:
            pod.end()

    async def _split(self, exchange: Exchange, route: Split[Pod]) -> web.StreamResponse:
        self._metrics.paths.labels(Path.SPLIT.value).inc()
        prefill, decode = Hold(route.prefill), Hold(route.decode)
        try:
            transfer = await self._prefill(exchange, route.prefill)
            if isinstance(transfer, web.Response):
                return transfer
            document = exchange.parsed.document
            body = decode_body(document, transfer) if transfer else exchange.parsed.raw
            return await self._answer(exchange, route.decode, body, prefill)
        finally:
            prefill.release()
            decode.release()

    async def _prefill(self, exchange: Exchange, pod: Pod) -> dict[str, Any] | web.Response | None:
        """Step one: where the KV cache is, None if nowhere, or the engine's refusal of the request."""
        answer = await send(self._session, pod, exchange.path, prefill_body(exchange.parsed.document), exchange.headers)
        status, body = answer.status, await read(answer, pod)
        if status != 200:
            return web.Response(status=status, body=body, headers=JSON_HEADERS)
        try:
            return transfer_params(body)
        except ValueError as error:
            raise ApiError(
                502, UPSTREAM, f"Prefill pod {pod.endpoint.name}: {error}.", code="bad_upstream_answer"
            ) from error

    async def _answer(self, exchange: Exchange, pod: Pod, body: bytes, prefill: Hold | None) -> web.StreamResponse:
        """The step that the client sees, and for a request served whole the only one."""
        answer = await send(self._session, pod, exchange.path, body, exchange.headers)
        if is_short(answer):
            return relayed(answer, await read(answer, pod))

        def first_byte() -> None:
            if exchange.parsed.stream:
                self._metrics.ttft.observe(time.monotonic() - exchange.read_at)
            if prefill is not None:
                prefill.release()

        response, complete = await relay_stream(exchange.request, answer, pod, first_byte)
        if not complete:
            self._metrics.broken.inc()
        return response
