# SPDX-License-Identifier: Apache-2.0
"""KV between simulated engines: NIXL's transfer parameters, its lease, and an HTTP route as its side channel.

| request | answer |
|---|---|
| ``GET /kv/v1/blocks?engine_id=&request_id=`` | 200 ``{"digest", "tokens"}`` of KV that this engine keeps; 404 |
| ``DELETE /kv/v1/blocks?engine_id=&request_id=`` | 204: read and freed; 404 |

The reader asks for the KV before it counts the transfer's time. KV that is not there is recomputed, as vLLM does under
``kv_load_failure_policy=recompute``; KV of another prompt gives another text, as it would on a real engine.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from aiohttp import web
from pydantic import BaseModel, Field, ValidationError

from gearshift.perf.capacity import transfer_seconds
from gearshift.sim.engine.faults import Fault
from gearshift.sim.engine.requests import Request
from gearshift.sim.engine.service import Service

KV_PATH: Final = "/kv/v1/blocks"
_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0, connect=2.0)
_LOG: Final = logging.getLogger(__name__)


class RemoteKv(BaseModel):
    """The fields of ``kv_transfer_params`` that say where KV is."""

    remote_engine_id: str
    remote_request_id: str
    remote_host: str
    remote_port: int = Field(ge=1, le=65535)
    remote_block_ids: list[list[int]] | list[int]


class _KeptKv(BaseModel):
    digest: str = Field(pattern="^[0-9a-f]{32}$")
    tokens: int = Field(ge=0)


@dataclass(slots=True)
class KvTransfers:
    """Both ends of the KV transfers of one engine."""

    service: Service
    host: str  # where others reach this engine
    port: int
    session: aiohttp.ClientSession

    async def fetch(self, request: Request, params: dict[str, Any] | None) -> None:
        """Bring the KV that ``params`` name, if any: sets the remote tokens and the digest of ``request``."""
        if not params or not params.get("do_remote_prefill"):
            return
        service = self.service
        service.transferring += 1
        try:
            kept = await self._read(params)
        finally:
            service.transferring -= 1
        service.metrics.count("vllm:external_prefix_cache_queries", by=request.prompt_tokens)
        if kept is None:
            service.metrics.count("vllm:nixl_num_failed_transfers")
            return
        request.digest = bytes.fromhex(kept.digest)
        request.remote_tokens = min(kept.tokens, request.prompt_tokens)
        service.metrics.count("vllm:external_prefix_cache_hits", by=request.remote_tokens)

    def offer(self, request: Request) -> dict[str, Any] | None:
        """``kv_transfer_params`` of the answer to a finished prefill; None when its KV is not kept."""
        pin = self.service.core.find_pin(request.id)
        if pin is None:
            return None
        arrangement = self.service.core.arrangement
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [pin.blocks],
            "remote_engine_id": self.service.engine_id,
            "remote_request_id": request.id,
            "remote_host": self.host,
            "remote_port": self.port,
            "tp_size": arrangement.width,
            "remote_num_tokens": pin.tokens,
            "remote_blocks_expiry_time": None,
        }

    async def _read(self, params: dict[str, Any]) -> _KeptKv | None:
        try:
            remote = RemoteKv.model_validate(params)
        except ValidationError as error:
            _LOG.warning("Recomputing: kv_transfer_params say no place to read from: %s", error)
            return None
        url = f"http://{_bracketed(remote.remote_host)}:{remote.remote_port}{KV_PATH}"
        query = {"engine_id": remote.remote_engine_id, "request_id": remote.remote_request_id}
        try:
            async with self.session.get(url, params=query, timeout=_TIMEOUT) as response:
                response.raise_for_status()
                kept = _KeptKv.model_validate(await response.json())
            options = self.service.options
            seconds = transfer_seconds(options.profile, options.arrangement.accelerators, kept.tokens)
            await asyncio.sleep(seconds / options.speed)
            async with self.session.delete(url, params=query, timeout=_TIMEOUT) as response:
                response.raise_for_status()
        except (aiohttp.ClientError, TimeoutError, ValidationError) as error:
            _LOG.warning("Recomputing: no KV of request %s at %s: %r", remote.remote_request_id, url, error)
            return None
        return kept


def kv_routes(service: Service) -> list[web.RouteDef]:
    """Routes for the engines that read from this one."""

    async def read(request: web.Request) -> web.Response:
        pin = service.core.find_pin(_request_id(request))
        if pin is None:
            raise web.HTTPNotFound(text="this engine keeps no KV of that request")
        return web.json_response({"digest": pin.digest.hex(), "tokens": pin.tokens})

    async def free(request: web.Request) -> web.Response:
        if not service.runner.release_pin(_request_id(request)):
            raise web.HTTPNotFound(text="this engine keeps no KV of that request")
        return web.Response(status=204)

    def _request_id(request: web.Request) -> str:
        if request.query.get("engine_id") != service.engine_id or Fault.LOSE_KV in service.faults:
            raise web.HTTPNotFound(text="this is not the engine of that request")
        return request.query.get("request_id", "")

    return [web.get(KV_PATH, read), web.delete(KV_PATH, free)]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
