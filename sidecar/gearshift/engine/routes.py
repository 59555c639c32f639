# SPDX-License-Identifier: Apache-2.0
"""Endpoint plugin of vLLM (entry point ``gearshift`` in ``vllm.endpoint_plugins``).

It serves the routes of `gearshift.api.engine`.
vLLM loads it only when ``VLLM_PLUGINS`` names ``gearshift``. The routes are for the sidecar of the pod, so they answer
loopback peers only, whatever address the API server listens on.
"""

import asyncio
import ipaddress
from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from gearshift.api.engine import ENGINE_PREFIX, EngineError, EngineState, LayoutRequest, PauseRequest, RoleRequest
from gearshift.engine.control import Control, ControlError
from gearshift.engine.reports import Shape
from gearshift.engine.shiftview import WORKERS

_Body = TypeVar("_Body", bound=BaseModel)
_Handler = Callable[[Any], Awaitable[EngineState]]


class GearshiftRoutes:
    """What vLLM's API server makes one of."""

    name: Final = "gearshift"
    required_tasks: Final = ("generate",)

    def attach_router(self, app: Any) -> None:
        """Add the routes to the API server's application."""
        for method, path, handler in _ROUTES:
            app.add_route(ENGINE_PREFIX + path, _endpoint(handler), methods=[method])

    async def init_state(self, engine_client: Any, state: Any, _args: Namespace) -> None:
        """Remember how to reach the engine."""
        import vllm  # noqa: PLC0415

        from gearshift.engine.compat import select  # noqa: PLC0415

        parallel = engine_client.vllm_config.parallel_config
        replicas = int(parallel.data_parallel_size)
        shape = Shape(
            data_parallel_size=replicas,
            world_size=replicas * int(parallel.world_size),
            version=vllm.__version__,
            shift=str(parallel.worker_cls).startswith(WORKERS),
        )
        state.gearshift = control = Control(engine_client.engine_core, select(vllm.__version__), shape)
        if shape.shift:
            state.gearshift_refresh = _export_metrics(control)


def _export_metrics(control: Control) -> asyncio.Task[None]:
    """Add the series of the shift engine to the API server's page; the task keeps them fresh."""
    from prometheus_client import REGISTRY  # noqa: PLC0415 - only in an API server

    from gearshift.engine.shiftmetrics import ShiftCollector, refresh  # noqa: PLC0415

    REGISTRY.register(ShiftCollector(lambda: control.shift))
    return asyncio.create_task(refresh(control))


def is_loopback(host: str | None) -> bool:
    """True for a peer on this pod's own loopback; a Unix socket's peer has no address and is refused."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _endpoint(handler: _Handler) -> Callable[..., Awaitable[Any]]:
    async def endpoint(request: Any) -> Any:
        if not is_loopback(request.client.host if request.client else None):
            return _answer(403, EngineError(reason="Forbidden", message="only loopback peers may ask this"))
        try:
            return _answer(200, await handler(request))
        except ControlError as error:
            return _answer(error.status, EngineError(reason=error.reason, message=error.message))
        except ValidationError as error:
            return _answer(422, EngineError(reason="BadRequest", message=explain(error)))
        except Exception as error:  # noqa: BLE001 - a dead core raises what its client saw; the sidecar must hear of it
            return _answer(503, EngineError(reason=type(error).__name__, message=str(error)))

    return endpoint


def explain(error: ValidationError) -> str:
    """All complaints on one line, each with its field."""
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}" for one in error.errors())


def _answer(status: int, body: EngineState | EngineError) -> Any:
    from starlette.responses import JSONResponse  # noqa: PLC0415

    return JSONResponse(body.dump(), status_code=status)


async def _body(request: Any, kind: type[_Body]) -> _Body:
    return kind.model_validate_json(await request.body() or b"{}")


def _control(request: Any) -> Control:
    control: Control = request.app.state.gearshift
    return control


async def _state(request: Any) -> EngineState:
    return await _control(request).state()


async def _pause(request: Any) -> EngineState:
    return await _control(request).pause(await _body(request, PauseRequest))


async def _resume(request: Any) -> EngineState:
    return await _control(request).resume()


async def _layout(request: Any) -> EngineState:
    return await _control(request).layout(await _body(request, LayoutRequest))


async def _role(request: Any) -> EngineState:
    return await _control(request).role(await _body(request, RoleRequest))


_ROUTES: Final[tuple[tuple[str, str, _Handler], ...]] = (
    ("GET", "/engine", _state),
    ("POST", "/pause", _pause),
    ("POST", "/resume", _resume),
    ("POST", "/layout", _layout),
    ("POST", "/role", _role),
)
