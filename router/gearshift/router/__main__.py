# SPDX-License-Identifier: Apache-2.0
"""``python -m gearshift.router``: the router process of one InferenceService."""

from gearshift.api import process1  # noqa: F401 - handles SIGTERM while the rest is imported

# isort: split
import asyncio
import logging
import os
import resource
import secrets
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import uvloop
from pydantic import ValidationError

from gearshift.api import names
from gearshift.api.routerconfig import RouterConfig
from gearshift.router.connection import SURPLUS_CONNECTIONS
from gearshift.router.kubeaccess import AccessError, find_access
from gearshift.router.kubeendpoints import KubeEndpoints
from gearshift.router.service import Router, quiet_collector
from gearshift.router.tokens import TokenFile

log = logging.getLogger("gearshift.router")

GRACE_SECONDS: Final = 25.0  # within the 30 s that Kubernetes gives a pod by default, with the lame-duck time before it
OTHER_FILES: Final = 512  # beside clients and engines: two connections a pod, the API server, the process itself


class ConfigError(Exception):
    """The process was started with a configuration that can't be used."""


def load_config(env: Mapping[str, str]) -> RouterConfig:
    """Configuration from the environment.

    Raises:
        ConfigError: missing or wrong, naming every field and its bad value.
    """
    raw = env.get(names.ENV_ROUTER_CONFIG)
    if raw is None:
        raise ConfigError(
            f"environment variable {names.ENV_ROUTER_CONFIG} is not set; it holds the JSON of a RouterConfig"
        )
    try:
        return RouterConfig.model_validate_json(raw)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'document'}: {fault['msg']}, not {fault['input']!r}"
            for fault in error.errors()
        )
        raise ConfigError(f"{names.ENV_ROUTER_CONFIG}: {faults}") from error


def raise_file_limit(config: RouterConfig) -> None:
    """Take as many open files as the kernel grants, and say so when they are fewer than the limits may need."""
    _, granted = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (granted, granted))
    needed = config.max_connections + SURPLUS_CONNECTIONS + config.max_in_flight + OTHER_FILES
    if granted < needed:
        log.warning(
            "%d files may be open, maxConnections %d and maxInFlight %d can need %d",
            granted,
            config.max_connections,
            config.max_in_flight,
            needed,
        )


async def run(config: RouterConfig) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    raise_file_limit(config)
    name = f"{socket.gethostname()}-{secrets.token_hex(4)}"
    router = Router(config, KubeEndpoints(config, find_access()), TokenFile(Path(names.TOKEN_FILE)), name)
    await router.start(None, names.PORT_ROUTER, names.PORT_ROUTER_METRICS)
    log.info("router %s serves %s/%s on port %d", name, config.namespace, config.service, router.port)
    quiet_collector()
    failed = asyncio.create_task(router.failed())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait((failed, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    await router.stop(GRACE_SECONDS)
    if not stop.is_set():
        failed.result()


def main() -> int:
    """Start the process; 2 when its configuration can't be used."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        uvloop.run(run(load_config(os.environ)))
    except (ConfigError, AccessError) as error:
        log.error("%s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
