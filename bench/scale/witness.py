# SPDX-License-Identifier: Apache-2.0
"""Watches the services as any user may, and notes when their status said what."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from bench.scale.api import Api
from gearshift.api import conditions
from gearshift.operator.resources import SERVICES_OF_INFERENCE

Json = dict[str, Any]
Key = tuple[str, str]  # namespace, name


class Witness:
    """The statuses as the watch brings them; times are of ``time.monotonic``."""

    def __init__(self) -> None:
        self.statuses: dict[Key, Json] = {}
        self.decided_at: dict[Key, float] = {}
        self.reported_at: dict[str, float] = {}  # by uid of a dead pod: when the status stopped to call it ready
        self._awaited: dict[Key, dict[str, str]] = {}  # names of pods that die, with their uids
        self._changed = asyncio.Event()

    async def run(self, api: Api) -> None:
        """Take in what the API server tells until cancelled."""
        async for _, bodies in api.follow(SERVICES_OF_INFERENCE):
            for body in bodies:
                self._see(body, time.monotonic())

    def _see(self, body: Json, at: float) -> None:
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        status = body.get("status") or {}
        self.statuses[key] = status
        if status.get("lastDecision") and status.get("observedGeneration") == body["metadata"]["generation"]:
            self.decided_at.setdefault(key, at)
        awaited = self._awaited.get(key, {})
        serving = {pod["name"] for pod in status.get("pods") or [] if pod["ready"]}
        for name in [name for name in awaited if name not in serving]:
            self.reported_at[awaited.pop(name)] = at
        self._changed.set()

    def expect(self, key: Key, pod: str, uid: str) -> None:
        """Note when a pod that the status calls ready is no longer called so."""
        self._awaited.setdefault(key, {})[pod] = uid

    def unready(self) -> dict[str, str]:
        """What stands in the way of services that are not Ready with all of their pods."""
        return {"/".join(key): why for key, status in self.statuses.items() if (why := _missing(status))}

    async def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for a condition; False when the time is over."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True


def _missing(status: Json) -> str:
    found = {each["type"]: each for each in status.get("conditions") or []}
    wanted = (conditions.READY, conditions.ENGINES_READY)
    untrue = [
        found.get(kind, {}).get("message", kind) for kind in wanted if found.get(kind, {}).get("status") != "True"
    ]
    ready, pods = status.get("readyReplicas", 0), len(status.get("pods") or [])
    return "; ".join(untrue) or ("" if ready == pods else f"{ready} of {pods} pods serve")
