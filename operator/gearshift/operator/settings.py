# SPDX-License-Identifier: Apache-2.0
"""Settings of the operator: one flag and one environment variable a field, checked at start."""

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gearshift.api import names
from gearshift.api.routerconfig import RouterLimits
from gearshift.operator.errors import SettingsError

ENV_PREFIX: Final = "GEARSHIFT_OPERATOR_"
_DNS: Final = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_UNTOLD: Final[tuple[Any, ...]] = (None, (), {}, RouterLimits())  # defaults that say nothing, or are described
_IMAGE: Final = r"^[\w.:/@-]+$"


class Settings(BaseModel):
    """What an operator process is told. A field is a flag ``--field-name`` and ``GEARSHIFT_OPERATOR_FIELD_NAME``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str = Field(pattern=_IMAGE, description="image of sidecar, router and the Simulated engine")
    engine_image_cuda: str | None = Field(
        default=None, pattern=_IMAGE, description="default engine image for VLLM on CUDA"
    )
    engine_image_cpu: str | None = Field(
        default=None, pattern=_IMAGE, description="default engine image for VLLM on CPU"
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="pull policy of the pods it makes"
    )
    namespaces: tuple[str, ...] = Field(
        default=(), description="namespaces to serve, with commas between them; all when left out"
    )
    own_namespace: str = Field(
        default="gearshift-system",
        pattern=_DNS,
        description="namespace that the operator runs in and keeps its lease in",
    )
    lease_name: str = Field(default="gearshift-operator", pattern=_DNS, description="name of the leader lease")
    account: str | None = Field(
        default=None, description="user name that sidecars know the operator by; asked of the API server when left out"
    )
    kubeconfig: str | None = Field(
        default=None, description="kubeconfig file; else KUBECONFIG, else the pod's own account"
    )
    token_file: str = Field(default=names.TOKEN_FILE, description="token for the sidecars' control API")
    prometheus_url: str | None = Field(
        default=None, pattern=r"^https?://[^/?#@\s]+(/[^?#\s]*)?$", description="address of Prometheus"
    )
    scrape_seconds: float = Field(
        default=5.0, ge=0.5, le=300, description="scrape interval of the engines' series in Prometheus"
    )
    monitoring_namespace: str | None = Field(
        default=None, pattern=_DNS, description="namespace of Prometheus, let through to engine and sidecar metrics"
    )
    metrics_host: str = Field(default="0.0.0.0", description="address to serve metrics and probes on")  # noqa: S104
    metrics_port: int = Field(
        default=names.PORT_OPERATOR_METRICS, ge=0, le=65535, description="its port; 0 takes a free one"
    )
    namespace_accelerators: dict[str, int] = Field(
        default={},
        description="accelerators that the pods of a namespace may hold together, as NAMESPACE=NUMBER with commas"
        " between them; *=NUMBER is for every other namespace; no limit where left out",
    )
    router_replicas: int = Field(default=1, ge=1, le=64, description="router pods of one service")
    router_limits: RouterLimits = Field(
        default=RouterLimits(),
        description="limits of every router, as NAME=VALUE with commas between them: maxConnections=8192 of clients,"
        " maxInFlight=4096 requests, maxQueue=1024 of them that wait for a pod, queueTimeout=30s for each,"
        " maxBodyBytes=8388608, connectTimeout=2s to a pod, retryAfter=1s",
    )
    tick_seconds: float = Field(default=5.0, ge=0.2, le=60, description="pause between two looks at a quiet service")
    resync_seconds: float = Field(
        default=300.0, ge=5, le=3600, description="pause between two full listings, which find what watches lost"
    )
    node_lost_seconds: float = Field(
        default=40.0, ge=1, le=3600, description="how long a node may be not ready before its pods are replaced"
    )
    transition_grace_seconds: float = Field(
        default=900.0,
        ge=1,
        le=86400,
        description="how long a transition may take beyond its drain timeout before it has failed and its pod is"
        " replaced",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(default="INFO", description="least level logged")
    log_format: Literal["json", "text"] = Field(default="json", description="form of the log lines")

    @field_validator("namespace_accelerators", "router_limits", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        pairs = [part.strip().partition("=") for part in value.split(",") if part.strip()]
        return {name.strip(): number.strip() for name, _, number in pairs}

    @field_validator("namespace_accelerators")
    @classmethod
    def _limited(cls, value: dict[str, int]) -> dict[str, int]:
        for namespace, number in value.items():
            if namespace != "*" and not re.match(_DNS, namespace):
                raise ValueError(f"{namespace!r} is not a namespace")
            if number < 0:
                raise ValueError(f"{namespace}={number} is below 0")
        return value

    @field_validator("namespaces", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("namespaces")
    @classmethod
    def _dns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for namespace in value:
            if not namespace.replace("-", "").isalnum() or namespace != namespace.lower() or len(namespace) > 63:
                raise ValueError(f"{namespace!r} is not a namespace")
        return value


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from flags, then environment variables, then defaults.

    Raises:
        SettingsError: names the flag, the variable and the bad value.
    """
    parser = argparse.ArgumentParser(prog="python -m gearshift.operator", description=__doc__, allow_abbrev=False)
    for name, field in Settings.model_fields.items():
        default = "" if field.is_required() or field.default in _UNTOLD else f" (default {field.default})"
        parser.add_argument(_flag(name), dest=name, metavar="VALUE", help=f"{field.description}{default}")
    flags = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
    variables = {name: environment[_variable(name)] for name in Settings.model_fields if _variable(name) in environment}
    if environment.get("KUBECONFIG"):
        variables.setdefault("kubeconfig", environment["KUBECONFIG"])
    try:
        return Settings.model_validate(variables | flags)
    except ValidationError as problem:
        raise SettingsError("; ".join(_explained(error) for error in problem.errors())) from problem


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(name: str) -> str:
    return ENV_PREFIX + name.upper()


def _explained(error: Any) -> str:
    name = str(error["loc"][0])
    inner = "".join(f" {part}" for part in error["loc"][1:])
    value = "" if error["type"] == "missing" else f" {error['input']!r}"
    return f"{_flag(name)} ({_variable(name)}){inner}{value}: {error['msg']}"
