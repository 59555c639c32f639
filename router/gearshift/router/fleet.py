# SPDX-License-Identifier: Apache-2.0
"""The pods of the service as this router knows them now: the one place where endpoints, state streams and the data path
meet.

Everything happens on one event loop and between two awaits, so a pod that stops admitting is out of every later choice,
and the number of requests in flight that an acknowledgement carries is exact.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from yarl import URL

from gearshift.api.vocabulary import Role
from gearshift.api.wire import PodState
from gearshift.router.endpoints import Endpoint
from gearshift.scheduling.choose import Trust

log = logging.getLogger(__name__)

HEARD_SECONDS: Final = 4.0
"""A state may be this old. A sidecar waits 5 s for a router whose stream it has lost, and then switches without it."""
SETTLING_SECONDS: Final = 3.0  # so long a pod that came may take until its state is heard
SUSPECT_SECONDS: Final = 2.0  # how long a failed connection counts against a pod


class Pod:
    """One pod: what its endpoint and its sidecar say, and what this router has in flight there. A
    `gearshift.scheduling` candidate.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.state: PodState | None = None
        self.admitting = False
        self.role = Role.UNIFIED
        self.trust = Trust.STALE
        self.in_flight = 0
        self.reported = 0
        self.live = False  # the state stream is connected and talks
        self.listed_at = time.monotonic()
        self.heard_at = 0.0  # monotonic time of the last state
        self.suspect_until = 0.0
        self.ack_due = asyncio.Event()
        self._urls: dict[str, URL] = {}

    def url(self, path: str) -> URL:
        """Address of ``path`` at the active engine."""
        url = self._urls.get(path)
        if url is None:
            assert self.state is not None, "only a pod with a state is ever chosen"
            url = URL.build(scheme="http", host=self.endpoint.ip, port=self.state.engine_port, path=path)
            self._urls[path] = url
        return url

    def begin(self) -> None:
        """A request is on its way to this pod."""
        self.in_flight += 1
        if not self.admitting:
            self.ack_due.set()

    def end(self) -> None:
        """The pod owes that request no more. A pod that drains hears of it."""
        self.in_flight -= 1
        if not self.admitting:
            self.ack_due.set()

    def forget_urls(self) -> None:
        """The active engine listens elsewhere now."""
        self._urls.clear()


class Fleet:
    """All pods, and the event of a change that a waiting request must know."""

    def __init__(self, model: str) -> None:
        self.pods: dict[str, Pod] = {}  # by uid
        self.change = asyncio.Event()  # set once, then replaced: at every change that may let a waiting request go
        self._model = model
        self._listed = False
        self._serving: dict[str, list[Pod]] = {}  # pods that admit and can be trusted to, by model
        self._last: dict[str, list[Pod]] = {}  # pods that admitted when they were last heard, or fail, by model

    def set_endpoints(self, endpoints: Sequence[Endpoint]) -> tuple[list[Pod], list[Pod]]:
        """Take over the list of the source; returns the pods that came and those that went."""
        self._listed = True
        listed = {endpoint.uid: endpoint for endpoint in endpoints}
        gone = [pod for uid, pod in self.pods.items() if uid not in listed or listed[uid].ip != pod.endpoint.ip]
        for pod in gone:
            del self.pods[pod.endpoint.uid]
        came = []
        for uid, endpoint in listed.items():
            if uid in self.pods:
                self.pods[uid].endpoint = endpoint
            else:
                came.append(Pod(endpoint))
                self.pods[uid] = came[-1]
        self.refresh()
        return came, gone

    def apply(self, pod: Pod, state: PodState) -> bool:
        """Take over a state that the pod's sidecar sent; True when its sequence is new, so that it must be
        acknowledged.
        """
        before, was_live, was_suspect = pod.state, pod.live, pod.trust is Trust.SUSPECT
        pod.state, pod.live, pod.heard_at = state, True, time.monotonic()
        pod.reported = state.load.running + state.load.waiting
        known = before is not None and before.sequence == state.sequence
        if known and was_live and not was_suspect:
            return False
        if before is None or before.engine_port != state.engine_port:
            pod.forget_urls()
        if not known:
            pod.suspect_until = 0.0
        self.refresh()
        return not known

    def lose(self, pod: Pod) -> None:
        """The state stream of ``pod`` is gone; its last state stays in use for a while."""
        pod.live = False
        self.refresh()

    def suspect(self, pod: Pod) -> None:
        """A connection to the pod's engine failed: others come first for a moment."""
        pod.suspect_until = time.monotonic() + SUSPECT_SECONDS
        self.refresh()

    def refresh(self) -> None:
        """Derive who serves from what is known, and wake the requests that wait."""
        now = time.monotonic()
        self._serving, self._last = {}, {}
        for pod in self.pods.values():
            _judge(pod, now)
            if pod.admitting and pod.state is not None:
                found = self._serving if pod.trust < Trust.UNHEARD else self._last
                found.setdefault(pod.state.model, []).append(pod)
        self.change.set()
        self.change = asyncio.Event()

    def serving(self, model: str, without: Collection[Pod] = ()) -> list[Pod]:
        """Pods that admit requests for ``model``; those that nothing is known of now only where there is no other."""
        pods = self._serving.get(model, [])
        if without:
            pods = [pod for pod in pods if pod not in without]
        return pods or [pod for pod in self._last.get(model, []) if pod not in without]

    def models(self) -> list[str]:
        """Served model names: the configured one, then those that pods have besides (while a rename rolls out)."""
        others = {pod.state.model for pod in self.pods.values() if pod.state is not None}
        return [self._model, *sorted(others - {self._model})]

    def knows(self, model: str) -> bool:
        """Whether ``model`` is served here, now or in a moment."""
        return model == self._model or model in self._serving or model in self.models()

    def settling(self) -> bool:
        """Whether pods may have other names than `models` tells: they are not listed yet, or came a moment ago."""
        now = time.monotonic()
        pods = self.pods.values()
        return not self._listed or any(p.state is None and now - p.listed_at < SETTLING_SECONDS for p in pods)

    def why_none(self, model: str) -> str:
        """Why no pod admits a request for ``model``, for the client and whoever reads its logs."""
        if not self.pods:
            return "it has no pods"
        pods = [pod for pod in self.pods.values() if pod.state is None or pod.state.model == model]
        return f"none of its {len(self.pods)} pods admits requests ({_phases(pods)})"


def _judge(pod: Pod, now: float) -> None:
    state, endpoint = pod.state, pod.endpoint
    pod.admitting = state is not None and state.admitting and not endpoint.terminating
    if state is not None:
        pod.role = state.role
    if now < pod.suspect_until or (not pod.live and endpoint.ready is False):
        pod.trust = Trust.SUSPECT
    elif pod.live:
        pod.trust = Trust.FRESH
    else:
        pod.trust = Trust.STALE if now - pod.heard_at <= HEARD_SECONDS else Trust.UNHEARD


def _phases(pods: Iterable[Pod]) -> str:
    counts = Counter(_phase(pod) for pod in pods)
    return ", ".join(f"{count} {phase}" for phase, count in sorted(counts.items())) or "none serves this model"


def _phase(pod: Pod) -> str:
    if pod.endpoint.terminating:
        return "Terminating"
    return pod.state.phase.value if pod.state is not None else "without a known state"
