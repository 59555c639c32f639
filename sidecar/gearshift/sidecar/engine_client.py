# SPDX-License-Identifier: Apache-2.0
"""Calls to one resident engine on loopback: the routes of `gearshift.api.engine`, and a probe request like a user's."""

import time
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from pydantic import ValidationError

from gearshift.api.base import TolerantModel
from gearshift.api.engine import (
    ENGINE_PREFIX,
    PREFILL_TRANSFER,
    EngineError,
    EngineState,
    LayoutRequest,
    PauseRequest,
    RoleRequest,
)
from gearshift.api.vocabulary import Role

PROBE_PROMPT: Final = "Gearshift asks whether this engine answers."
_EXCERPT: Final = 300


class EngineCallError(RuntimeError):
    """An engine did not do what it was asked; the message names the engine, the route and the cause."""

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable  # no connection: the process may be gone, which its host will say soon


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe request got."""

    tokens: int
    seconds: float


class EngineClient:
    """One engine process."""

    def __init__(self, session: aiohttp.ClientSession, name: str, base_url: str, call_seconds: float) -> None:
        self.name = name
        self._session = session
        self._base_url = base_url
        self._call_seconds = call_seconds

    async def state(self) -> EngineState:
        """What the engine says of itself."""
        return await self._control("GET", "engine", None, self._call_seconds)

    async def pause(self) -> EngineState:
        """Stop scheduling; requests keep their KV."""
        request = PauseRequest(timeout_seconds=self._call_seconds)
        return await self._control("POST", "pause", request, 2 * self._call_seconds)

    async def resume(self) -> EngineState:
        """Schedule again."""
        return await self._control("POST", "resume", None, self._call_seconds)

    async def set_layout(self, request: LayoutRequest, timeout: float) -> EngineState:
        """Serve with another layout of this process."""
        return await self._control("POST", "layout", request, timeout)

    async def set_role(self, request: RoleRequest, timeout: float) -> EngineState:
        """Serve in another role."""
        return await self._control("POST", "role", request, timeout)

    async def probe(self, model: str, role: Role, timeout: float) -> ProbeResult:
        """Have one token made the way users' requests are in this role.

        Raises:
            EngineCallError: no token, or a prefill without its KV transfer parameters.
        """
        started = time.monotonic()
        answer = await self._call("POST", "/v1/completions", probe_body(model, role), timeout)
        return ProbeResult(read_probe(self.name, role, answer), time.monotonic() - started)

    async def _control(self, method: str, route: str, body: TolerantModel | None, timeout: float) -> EngineState:
        path = f"{ENGINE_PREFIX}/{route}"
        answer = await self._call(method, path, {} if body is None else body.dump(), timeout)
        try:
            return EngineState.model_validate(answer)
        except ValidationError as error:
            raise EngineCallError(f"engine {self.name} {path}: answer is no EngineState: {error}") from error

    async def _call(self, method: str, path: str, body: dict[str, Any], timeout: float) -> Any:
        where = f"engine {self.name} {path}"
        limit = aiohttp.ClientTimeout(total=timeout)
        payload = None if method == "GET" else body
        try:
            async with self._session.request(method, self._base_url + path, json=payload, timeout=limit) as response:
                if response.status >= 300:
                    raise EngineCallError(f"{where}: {response.status} {_explain(await response.text())}")
                return await response.json(content_type=None)
        except TimeoutError as error:
            raise EngineCallError(f"{where}: no answer within {timeout:g} s") from error
        except (aiohttp.ClientConnectionError, OSError) as error:
            raise EngineCallError(f"{where}: {error!r}", unreachable=True) from error
        except (aiohttp.ClientError, ValueError) as error:
            raise EngineCallError(f"{where}: {error!r}") from error


def probe_body(model: str, role: Role) -> dict[str, Any]:
    """Request of a probe. It ignores the end of sequence: only a request that ends by length hands its KV over."""
    body: dict[str, Any] = {
        "model": model,
        "prompt": PROBE_PROMPT,
        "max_tokens": 1,
        "temperature": 0,
        "ignore_eos": True,
    }
    if role is Role.PREFILL:
        body["kv_transfer_params"] = PREFILL_TRANSFER
    return body


def read_probe(engine: str, role: Role, answer: Any) -> int:
    """Number of tokens in the answer to a probe.

    Raises:
        EngineCallError: none, or a prefill without its KV transfer parameters.
    """
    usage = answer.get("usage") if isinstance(answer, dict) else None
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    if not isinstance(tokens, int) or tokens < 1:
        raise EngineCallError(f"engine {engine} answered the probe without a token: {str(answer)[:_EXCERPT]}")
    if role is Role.PREFILL and not answer.get("kv_transfer_params"):
        raise EngineCallError(f"engine {engine} answered the probe of a prefill without kv_transfer_params")
    return tokens


def _explain(text: str) -> str:
    try:
        error = EngineError.model_validate_json(text)
    except ValidationError:
        return text[:_EXCERPT]
    return f"{error.reason}: {error.message}"
