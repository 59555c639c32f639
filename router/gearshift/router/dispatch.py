# SPDX-License-Identifier: Apache-2.0
"""From a completion request to the pod, or the pair of pods, that serves it: choose, wait if none admits, try, try
elsewhere, and wait again where there is nothing else: an engine that died is back in a while.
"""

import asyncio
import logging
import time
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from aiohttp import ClientSession, web

from gearshift.api.routerconfig import RouterConfig
from gearshift.router.admission import Admission
from gearshift.router.attempts import Attempts
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
    """A place of a request on a pod, from the choice on. That on a prefill pod ends with the first byte of a streamed
    answer of the decode pod: by then it has the KV cache. An answer that is not streamed shows nothing of that before
    its end, so there the place ends with the prefill step, and the KV cache is for the prefill pod's sidecar to guard.
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
                await self._learn(parsed.model)
            headers = request_headers(request.raw_headers)
            return await self._serve(Exchange(request, path, parsed, headers, time.monotonic()))
        finally:
            self._admission.leave()

    async def _learn(self, model: str) -> None:
        """Wait for pods that are yet to be heard to say that they have the model under this name.

        Raises:
            ApiError: 404, they have not; 429, too many wait already; 503, no list of pods within the queue timeout.
        """
        if not self._fleet.settling():
            raise unknown_model(model, self._fleet.models())
        with self._admission.queue(again=False):
            try:
                async with asyncio.timeout(self._admission.patience_seconds):
                    while not self._fleet.knows(model):
                        if not self._fleet.settling():
                            raise unknown_model(model, self._fleet.models())
                        await self._fleet.change.wait()
            except TimeoutError:
                raise self._admission.unavailable(self._fleet.why_none(model)) from None

    async def _serve(self, exchange: Exchange) -> web.StreamResponse:
        attempts = Attempts()
        while not attempts.exhausted:
            route = self._choose(exchange, attempts.pods) or await self._wait(exchange, attempts)
            try:
                if isinstance(route, Split):
                    return await self._split(exchange, route)
                return await self._whole(exchange, route)
            except AttemptError as error:
                self._note(error, news=attempts.failed(error))
        raise self._admission.unavailable(attempts.told)

    def _note(self, error: AttemptError, *, news: bool) -> None:
        log.log(logging.WARNING if news else logging.DEBUG, "an attempt failed before the first byte: %s", error)
        self._metrics.retries.labels(error.reason.value).inc()
        if error.reason is Reason.CONNECT:
            self._fleet.suspect(error.pod)

    async def _wait(self, exchange: Exchange, attempts: Attempts) -> Route[Pod]:
        """A route when there's none now: a pod that has not failed, or after a pause the first that admits.

        Raises:
            ApiError: 429, too many wait already; 503, none within the queue timeout.
        """
        with self._admission.queue(again=attempts.waited):
            try:
                async with asyncio.timeout_at(attempts.wait_until(self._admission.patience_seconds)):
                    if attempts.pods and (route := await self._while_pausing(exchange, attempts)):
                        return route
                    return await self._offered(exchange, ())
            except TimeoutError:
                why = attempts.told or self._fleet.why_none(exchange.parsed.model)
                raise self._admission.unavailable(why) from None

    async def _while_pausing(self, exchange: Exchange, attempts: Attempts) -> Route[Pod] | None:
        try:
            async with asyncio.timeout(attempts.pause_seconds * self._rng.uniform(0.5, 1.0)):
                return await self._offered(exchange, attempts.pods)
        except TimeoutError:
            return None

    async def _offered(self, exchange: Exchange, avoid: Collection[Pod]) -> Route[Pod]:
        """First route that the fleet offers, asked again at every change of it.

        Raises:
            ApiError: 404, the last pod that had the model under this name is gone.
        """
        while (route := self._choose(exchange, avoid)) is None:
            await self._fleet.change.wait()
            if not self._fleet.knows(exchange.parsed.model):
                raise unknown_model(exchange.parsed.model, self._fleet.models())
        return route

    def _choose(self, exchange: Exchange, avoid: Collection[Pod]) -> Route[Pod] | None:
        pods = self._fleet.serving(exchange.parsed.model, avoid)
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
            if not exchange.parsed.stream:
                prefill.release()
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
