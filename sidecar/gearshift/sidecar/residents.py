# SPDX-License-Identifier: Apache-2.0
"""The resident engines of a pod as live objects: a client and a keeper each, found by layout."""

import asyncio

import aiohttp

from gearshift.api.vocabulary import Layout
from gearshift.sidecar.engine_client import EngineClient
from gearshift.sidecar.engines import EngineSet
from gearshift.sidecar.host_client import HostClient
from gearshift.sidecar.host_watch import HostWatch
from gearshift.sidecar.keeper import Keeper
from gearshift.sidecar.settings import Settings


class Residents:
    """All engines of the pod, in the order in which they are started."""

    def __init__(
        self, engines: EngineSet, settings: Settings, session: aiohttp.ClientSession, host: HostClient, watch: HostWatch
    ) -> None:
        self.engines = engines
        gate = asyncio.Lock()
        timings = settings.timings
        self._keepers = {
            plan.name: Keeper(
                plan,
                EngineClient(session, plan.name, f"http://{settings.engine_address}:{plan.port}", timings.engine_call),
                host,
                watch,
                timings,
                gate,
            )
            for plan in engines.plans
        }

    def serving(self, layout: Layout) -> Keeper:
        """The engine that serves a layout."""
        return self._keepers[self.engines.serving(layout).name]

    def all(self, first: Layout) -> list[Keeper]:
        """Every engine, the one that serves ``first`` at the head."""
        head = self.serving(first)
        return [head, *(keeper for keeper in self._keepers.values() if keeper is not head)]

    @property
    def shift_floor_tokens(self) -> int:
        """Least threshold that the pod's engine for layout Shift can be given."""
        return max(keeper.shift_floor_tokens for keeper in self._keepers.values())

    def others(self, keeper: Keeper) -> list[Keeper]:
        """The engines beside this one that are up."""
        return [other for other in self._keepers.values() if other is not keeper and other.up.is_set()]

    def ready_layouts(self, present: Layout) -> list[Layout]:
        """Layouts that could be switched to now, and the present one."""
        return [
            layout
            for plan in self.engines.plans
            for layout in plan.layouts
            if layout is present or (self._keepers[plan.name].up.is_set() and layout in self._keepers[plan.name].served)
        ]
