# SPDX-License-Identifier: Apache-2.0
"""What every effect works on: the live parts of a pod in one place, and the form of an effect's outcome."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from gearshift.sidecar.host_client import HostClient
from gearshift.sidecar.ledger import Detail, Record
from gearshift.sidecar.machine import Event
from gearshift.sidecar.residents import Residents
from gearshift.sidecar.routers import Routers
from gearshift.sidecar.settings import Settings

log = logging.getLogger(__name__)
Signal = tuple[Event, Detail]


class Observer(Protocol):
    """Receives measurements of effects."""

    def probed(self, engine: str, seconds: float) -> None:
        """A probe request was answered."""


@dataclass(slots=True)
class Pod:
    """The live parts of one pod."""

    settings: Settings
    residents: Residents
    routers: Routers
    host: HostClient
    observer: Observer
    note: Callable[[str], None] = field(default=log.info)  # shows a message in the pod's state
    monotonic: Callable[[], float] = field(default=time.monotonic)
    drain_until: float | None = None  # monotonic end of the pod's grace period, once it terminates


class EffectFunction(Protocol):
    """Carries out one effect; None when nothing follows from it."""

    async def __call__(self, pod: Pod, record: Record) -> Signal | None:
        """Do it."""
