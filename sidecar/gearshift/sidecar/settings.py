# SPDX-License-Identifier: Apache-2.0
"""Everything a sidecar is told at start, read from the environment and checked once: no other module reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from gearshift.api import names
from gearshift.api.podconfig import PodConfig

_ACCOUNT_DIR: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


class SettingsError(ValueError):
    """The environment does not describe a pod; the message names the variable and the bad value."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """Facts of this pod, from the downward API."""

    name: str
    uid: str
    ip: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports of the pod; other values than the defaults serve several pods on one address."""

    engine: int = names.PORT_ENGINE
    control: int = names.PORT_CONTROL
    metrics: int = names.PORT_SIDECAR_METRICS
    nixl: int = names.PORT_NIXL


@dataclass(frozen=True, slots=True)
class ApiServer:
    """How the Kubernetes API server is reached."""

    url: str
    token_file: Path = Path(_ACCOUNT_DIR, "token")
    ca_file: Path | None = Path(_ACCOUNT_DIR, "ca.crt")


@dataclass(frozen=True, slots=True)
class Timings:
    """Periods and limits, in seconds."""

    engine_poll: float = 0.1  # of the active engine: its load
    idle_poll: float = 2.0  # of a paused engine
    start_poll: float = 0.25  # of an engine that does not answer yet
    drain_poll: float = 0.02
    kv_pull: float = 10.0  # after all else has ended, KV may wait for other engines to pull it for so long
    engine_call: float = 10.0
    switch: float = 60.0
    probe: float = 120.0  # the first request may compile
    confirm: float = 2.0
    start: float = 3600.0  # from its start to its first answer, for which it may have to fetch the model
    hang: float = 60.0  # an engine that answers nothing for so long is restarted
    kill_again: float = 1.0  # a process that SIGKILL has not ended is signalled again
    backoff_first: float = 1.0
    backoff_most: float = 60.0
    backoff_reset: float = 600.0  # an engine that ran for so long starts again without delay
    router_linger: float = 5.0  # a router without a stream counts for so long after its last word
    router_silence: float = 5.0  # what is sent to a router may stay unacknowledged by its kernel for so long
    host_beat: float = 5.0  # longest silence of the engine host's event stream
    host_retry: float = 0.2
    beat: float = 1.0
    load_interval: float = 0.1
    shutdown_grace: float = 10.0
    settle: float = 2.0  # a restarted sidecar asks the engine for so long before it answers routers


@dataclass(frozen=True, slots=True)
class Settings:
    """All of it."""

    config: PodConfig
    pod: PodFacts
    api_server: ApiServer
    ports: Ports = field(default_factory=Ports)
    timings: Timings = field(default_factory=Timings)
    host_socket: Path = Path(names.HOST_SOCKET)
    state_file: Path = Path(names.STATE_FILE)
    bind: str = "0.0.0.0"  # noqa: S104 - a pod serves on its own address
    engine_address: str = "127.0.0.1"


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Settings from the environment of a sidecar container.

    Raises:
        SettingsError: a variable is missing or wrong.
    """
    return Settings(config=_config(environ), pod=_facts(environ), api_server=_api_server(environ))


def _required(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise SettingsError(f"environment variable {name} is not set")
    return value


def _config(environ: Mapping[str, str]) -> PodConfig:
    text = _required(environ, names.ENV_POD_CONFIG)
    try:
        return PodConfig.model_validate_json(text)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc']) or 'document'}: {item['msg']}, got {item['input']!r:.80}"
            for item in error.errors(include_url=False)
        )
        raise SettingsError(f"environment variable {names.ENV_POD_CONFIG}: {problems}") from error


def _facts(environ: Mapping[str, str]) -> PodFacts:
    return PodFacts(
        name=_required(environ, "POD_NAME"),
        uid=_required(environ, "POD_UID"),
        ip=_required(environ, "POD_IP"),
        namespace=_required(environ, "POD_NAMESPACE"),
    )


def _api_server(environ: Mapping[str, str]) -> ApiServer:
    host = _required(environ, "KUBERNETES_SERVICE_HOST")
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    bracketed = f"[{host}]" if ":" in host else host
    return ApiServer(url=f"https://{bracketed}:{port}")
