# SPDX-License-Identifier: Apache-2.0
"""Routes that a resident engine adds beside its OpenAI API, for the sidecar of its pod alone (loopback peers only).

The vLLM plugin and the Simulated engine serve the same ones:

| request | body -> answer |
|---|---|
| ``GET /gearshift/v1/engine`` | -> `EngineState` |
| ``POST /gearshift/v1/pause`` | `PauseRequest` -> `EngineState`; running requests keep their KV |
| ``POST /gearshift/v1/resume`` | -> `EngineState` |
| ``POST /gearshift/v1/layout`` | `LayoutRequest` -> `EngineState`; 422 `EngineError` when this engine can't |
| ``POST /gearshift/v1/role`` | `RoleRequest` -> `EngineState`; sets the scheduler's knobs |

A peer that is not on loopback gets 403. Every answer is read back from the scheduler and the ranks, never echoed.
"""

from typing import Any, Final

from pydantic import Field

from gearshift.api.base import TolerantModel
from gearshift.api.vocabulary import Layout, Role

ENGINE_PREFIX = "/gearshift/v1"

PREFILL_TRANSFER: Final[dict[str, Any]] = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
"""`kv_transfer_params` that tell a prefill engine to keep the KV cache of the request for another engine."""


class RoleKnobs(TolerantModel):
    """Scheduler settings of a role; None leaves the start value."""

    max_num_batched_tokens: int | None = Field(default=None, ge=1)
    max_num_seqs: int | None = Field(default=None, ge=1)
    long_prefill_token_threshold: int | None = Field(default=None, ge=0)


class EngineState(TolerantModel):
    """What one engine process says of itself."""

    layout: Layout
    layouts: list[Layout]  # those this process can serve
    role: Role
    epoch: int  # the epoch last set through /layout or /role; 0 at start
    paused: bool
    ranks: int  # ranks that answered this question
    world_size: int  # ranks there should be
    knobs: RoleKnobs  # as the scheduler holds them now
    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    shift_threshold_tokens: int | None = None  # in layout Shift: as the ranks hold it now
    shift_floor_tokens: int | None = None  # least threshold that it can be given
    details: dict[str, str] = Field(default_factory=dict)


class PauseRequest(TolerantModel):
    """Stop scheduling; requests and their KV stay."""

    timeout_seconds: float = 10.0


class LayoutRequest(TolerantModel):
    """Serve from now on with this layout."""

    layout: Layout
    epoch: int = Field(ge=0)
    shift_threshold_tokens: int | None = Field(default=None, ge=0)


class RoleRequest(TolerantModel):
    """Serve from now on in this role."""

    role: Role
    epoch: int = Field(ge=0)
    knobs: RoleKnobs = Field(default_factory=RoleKnobs)


class EngineError(TolerantModel):
    """Body of an error answer."""

    reason: str
    message: str
