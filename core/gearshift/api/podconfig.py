# SPDX-License-Identifier: Apache-2.0
"""Configuration that the operator gives to a sidecar (environment variable ``names.ENV_POD_CONFIG``, JSON)."""

from pydantic import Field

from gearshift.api.base import Duration, TolerantModel
from gearshift.api.engine import RoleKnobs
from gearshift.api.vocabulary import Device, EngineKind, Layout, Role


class PodConfig(TolerantModel):
    """What one pod is to run. Role and layout are those at start: later ones come by transitions."""

    namespace: str
    service: str
    model: str  # served model name
    model_path: str  # local path or hub id that the engine is started with
    revision: str | None = None  # of the model
    engine: EngineKind
    device: Device
    accelerators: int = Field(ge=1)
    layouts: list[Layout] = Field(min_length=1)
    initial_layout: Layout
    initial_role: Role
    disaggregated: bool  # roles are split in this service: engines start with a KV connector
    sequence_parallel_size: int | None = None
    shift_threshold_tokens: int | None = None
    engine_args: list[str] = Field(default_factory=list)
    engine_env: dict[str, str] = Field(default_factory=dict)
    role_knobs: dict[Role, RoleKnobs] = Field(default_factory=dict)
    drain_timeout: Duration = Duration("60s")
    operator_account: str  # system:serviceaccount:NAMESPACE:NAME that may order transitions
    router_account: str  # ... that may read the state and acknowledge it
