# SPDX-License-Identifier: Apache-2.0
"""Configuration that the operator gives to a router (environment variable ``names.ENV_ROUTER_CONFIG``, JSON)."""

from pydantic import ConfigDict, Field

from gearshift.api.base import Duration, FrozenModel


class RouterLimits(FrozenModel):
    """What a router bears, and for how long."""

    max_body_bytes: int = Field(default=8 * 1024 * 1024, ge=1024)
    max_connections: int = Field(default=8192, ge=1)  # of clients, with a request or idle; more get 429
    max_in_flight: int = Field(default=4096, ge=1)  # requests held at once; more get 429
    max_queue: int = Field(default=1024, ge=0)  # of them, waiting for an admitting pod
    queue_timeout: Duration = Duration("30s")
    connect_timeout: Duration = Duration("2s")
    retry_after: Duration = Duration("1s")


class RouterConfig(RouterLimits):
    """What one router serves, and its limits."""

    model_config = ConfigDict(extra="ignore")  # of a newer operator

    namespace: str
    service: str  # InferenceService name
    service_uid: str
    model: str  # served model name
