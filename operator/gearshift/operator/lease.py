# SPDX-License-Identifier: Apache-2.0
"""Leader election by a Lease, with a fencing token.

The token is ``spec.leaseTransitions``, which grows with every change of the holder. It goes with every order to a
sidecar; a sidecar refuses an older one, so a leader that was paused and does not know yet that it lost can do no harm.

States of one process:

    candidate --acquires--> leader --not renewed for RENEW_SECONDS--> suspended --renews, nobody came between--> leader
                              |                                           |
                              `------------ another holder ---------------+--> lost (the process ends)

Suspended is what an outage of the API server leads to: nothing is written and nothing ordered, but the process stays,
keeps what it knows, and goes on with the same token when the lease is still its own.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from gearshift.operator.errors import AlreadyExists, Conflict, KubeError, NotFound, NotLeader
from gearshift.operator.kube import Kube
from gearshift.operator.resources import LEASES

LEASE_SECONDS: Final = 15.0
RENEW_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2.0
_log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Another process holds the lease now."""


class Lease:
    """This process's part in the election."""

    def __init__(self, namespace: str, name: str, identity: str, clock: Callable[[], float] | None = None) -> None:
        self._namespace = namespace
        self._name = name
        self.identity = identity
        self._clock = clock or _seconds_awake_or_not
        self._renewed_at: float | None = None  # start of the last renewal that succeeded
        self._seen: tuple[str, str] = ("", "")  # holder and renew time last seen of others
        self._seen_at = 0.0
        self._wanted_token = 0
        self.token = 0
        self.acquired = asyncio.Event()

    @property
    def leading(self) -> bool:
        """This process may act now."""
        return self._renewed_at is not None and self._clock() - self._renewed_at < RENEW_SECONDS

    def check(self) -> None:
        """Refuse a write.

        Raises:
            NotLeader: this process may not act now.
        """
        if not self.leading:
            raise NotLeader(f"{self.identity} does not hold the lease {self._namespace}/{self._name}")

    def raise_token(self, seen: int) -> None:
        """Make the token exceed one that a sidecar has seen, which happens after somebody deleted the Lease object."""
        self._wanted_token = max(self._wanted_token, seen + 1)

    async def run(self, kube: Kube) -> None:
        """Take part until the lease is lost.

        Raises:
            LeaseLost: another process holds it.
        """
        while True:
            try:
                await self._attempt(kube)
            except (AlreadyExists, Conflict) as problem:
                _log.info("lease was changed by another process: %s", problem)
            except KubeError as problem:
                _log.warning("lease can't be renewed: %s", problem)
            await asyncio.sleep(RETRY_SECONDS * random.uniform(0.9, 1.1))  # noqa: S311 - jitter

    async def release(self, kube: Kube) -> None:
        """Give the lease back, so that the next leader need not wait for it to expire."""
        if not self.leading:
            return
        self._renewed_at = None
        lease = await self._read(kube)
        if lease is not None and lease["spec"].get("holderIdentity") == self.identity:
            lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
            await kube.write_lease(LEASES, lease)

    async def _attempt(self, kube: Kube) -> None:
        started = self._clock()
        lease = await self._read(kube)
        if lease is None:
            lease = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"namespace": self._namespace, "name": self._name},
                "spec": {},
            }
        holder = lease["spec"].get("holderIdentity") or ""
        if holder != self.identity:
            if self._renewed_at is not None and "resourceVersion" in lease["metadata"]:
                self._renewed_at = None
                raise LeaseLost(f"lease {self._namespace}/{self._name} is held by {holder or 'nobody'}")
            if holder and not self._expired(lease["spec"]):
                return
        written = await kube.write_lease(LEASES, self._claimed(lease, new=holder != self.identity))
        self.token = int(written["spec"].get("leaseTransitions") or 0)
        self._renewed_at = started
        if not self.acquired.is_set():
            _log.info("leading with fencing token %d", self.token)
            self.acquired.set()

    def _claimed(self, lease: dict[str, Any], *, new: bool) -> dict[str, Any]:
        spec = dict(lease["spec"])
        transitions = int(spec.get("leaseTransitions") or 0)
        if new:
            transitions += 1
            spec["acquireTime"] = _now()
        spec["leaseTransitions"] = max(transitions, self._wanted_token, self.token)
        spec |= {"holderIdentity": self.identity, "leaseDurationSeconds": int(LEASE_SECONDS), "renewTime": _now()}
        return {**lease, "spec": spec}

    def _expired(self, spec: dict[str, Any]) -> bool:
        """Another's lease has not moved for its duration, by our clock: those of other machines are not trusted."""
        seen = (str(spec.get("holderIdentity")), str(spec.get("renewTime")))
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._clock()
        return self._clock() - self._seen_at >= float(spec.get("leaseDurationSeconds") or LEASE_SECONDS)

    async def _read(self, kube: Kube) -> dict[str, Any] | None:
        try:
            return await kube.get(LEASES, self._namespace, self._name)
        except NotFound:
            return None


def _seconds_awake_or_not() -> float:
    """Seconds that also pass while the machine sleeps: a leader that slept must not believe that it leads."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
