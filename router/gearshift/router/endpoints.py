# SPDX-License-Identifier: Apache-2.0
"""Where the list of pods comes from. The Kubernetes API is the only source of the product; tests and the benchmark
bring their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gearshift.api import names


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A pod that may serve, as the source knows it. Whether it does is for its own state stream to say."""

    name: str
    uid: str
    ip: str
    ready: bool | None = None  # of its EndpointSlice; None: not listed there (yet)
    terminating: bool = False  # its deletion has begun
    control_port: int = names.PORT_CONTROL


Publish = Callable[[Sequence[Endpoint]], None]


class EndpointSource(Protocol):
    """Something that knows the pods of the service."""

    async def run(self, publish: Publish) -> None:
        """Call ``publish`` with all endpoints at every change, until cancelled. Knowing nothing new is no change: no
        call.
        """
