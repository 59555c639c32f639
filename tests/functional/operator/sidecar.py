# SPDX-License-Identifier: Apache-2.0
"""A sidecar that answers what a test tells it to."""

import json
import threading
import time
from typing import Any

from aiohttp import web

from gearshift.api import names
from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind, TransitionResult
from gearshift.api.wire import PodState, Proof, TransitionRequest, TransitionStatus

Json = dict[str, Any]


class Sidecar:
    """The control API of one pod."""

    def __init__(self, pod: Json, address: str) -> None:
        self.address = address
        container = pod["spec"]["initContainers"][0]
        text = next(entry["value"] for entry in container["env"] if entry["name"] == names.ENV_POD_CONFIG)
        config = PodConfig.model_validate(json.loads(text))
        self.state = PodState(
            pod=pod["metadata"]["name"],
            uid=pod["metadata"]["uid"],
            sequence=1,
            epoch=0,
            phase=PodPhase.SERVING,
            admitting=True,
            role=config.initial_role,
            layout=config.initial_layout,
            layouts=config.layouts,
            engine_port=names.PORT_ENGINE,
            model=config.model,
            since=time.time(),
        )
        self.orders: list[TransitionRequest] = []
        self.tokens: list[str] = []
        self.hold = threading.Event()  # set: transitions stay in Draining until released
        self.fails = False  # transitions are rolled back
        self.pretends = False  # takes orders and does nothing about them

    def routes(self) -> list[web.RouteDef]:
        """The control API."""
        return [web.get("/v1/state", self._state), web.post("/v1/transitions", self._order)]

    async def _state(self, request: web.Request) -> web.Response:
        self.tokens.append(request.headers.get("Authorization", ""))
        if self.state.transition is not None and not self.hold.is_set():
            self.finish()
        return web.json_response(self.state.dump())

    async def _order(self, request: web.Request) -> web.Response:
        order = TransitionRequest.model_validate(await request.json())
        if order.fencing_token < self.state.fencing_token:
            body = {"reason": "StaleFencingToken", "message": "stale", "fencingToken": self.state.fencing_token}
            return web.json_response(body, status=409)
        self.orders.append(order)
        if self.pretends:
            return web.json_response(self._accepted(order).dump(), status=202)
        status = self._accepted(order)
        self._set(transition=status, phase=PodPhase.DRAINING, admitting=False, fencing_token=order.fencing_token)
        return web.json_response(status.dump(), status=202)

    def reach(self, phase: PodPhase) -> None:
        """Be in a phase of the running transition."""
        assert self.state.transition is not None
        self._set(phase=phase, transition=self.state.transition.model_copy(update={"phase": phase}))

    def _accepted(self, order: TransitionRequest) -> TransitionStatus:
        before = self.state.layout.value if order.kind is TransitionKind.LAYOUT else self.state.role.value
        return TransitionStatus(
            id=order.id, kind=order.kind, from_=before, to=order.to, phase=PodPhase.DRAINING, started_at=time.time()
        )

    def finish(self) -> None:
        """Bring the running transition to its end."""
        running = self.state.transition
        if running is None or running.finished_at is not None:
            return
        if self.fails:
            ended = {"result": TransitionResult.ROLLED_BACK, "reason": "VerificationFailed", "finished_at": time.time()}
            self._set(transition=running.model_copy(update={**ended, "phase": PodPhase.SERVING}))
        else:
            self._commit(running)
        self._set(phase=PodPhase.SERVING, admitting=True, since=time.time())

    def _commit(self, running: TransitionStatus) -> None:
        epoch = self.state.epoch + 1
        proof = Proof(
            epoch_before=epoch - 1, epoch_after=epoch, ranks=8, expected_ranks=8, engine="main", probe_tokens=1,
            probe_seconds=0.01, routers=1,
        )  # fmt: skip
        ended = {"result": TransitionResult.COMMITTED, "reason": "Verified", "finished_at": time.time(), "proof": proof}
        layout = running.kind is TransitionKind.LAYOUT
        changed = {"layout": Layout(running.to)} if layout else {"role": Role(running.to)}
        self._set(epoch=epoch, transition=running.model_copy(update={**ended, "phase": PodPhase.SERVING}), **changed)

    def _set(self, **fields: Any) -> None:
        self.state = self.state.model_copy(update={**fields, "sequence": self.state.sequence + 1})
