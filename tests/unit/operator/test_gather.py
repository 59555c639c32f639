# SPDX-License-Identifier: Apache-2.0
"""One look at a service: whose silence is believed."""

import asyncio
from typing import Any, cast

from gearshift.api.v1alpha1 import InferenceService, InferenceServiceStatus
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.api.wire import PodState
from gearshift.operator.budgets import Budgets
from gearshift.operator.errors import SidecarError
from gearshift.operator.gather import Gatherer
from gearshift.operator.http import Http
from gearshift.operator.index import Index
from gearshift.operator.prom import Prometheus
from gearshift.operator.sidecars import Sidecars
from tests.unit.operator.test_index import ignore, live_pod, live_service

STATE = PodState(
    pod="chat-0", uid="pod-1", sequence=1, epoch=0, phase=PodPhase.SERVING, admitting=True, role=Role.UNIFIED,
    layout=Layout.TP, layouts=[Layout.TP], engine_port=8000, model="llama",
)  # fmt: skip


class Asked:
    """A sidecar that answers, is silent or refuses in the order of a script."""

    def __init__(self, *script: int | None) -> None:
        self._script = list(script)  # None: it answers; a number: the status of its refusal, 0 for silence

    async def state(self, _address: str) -> PodState:
        """The next of the script."""
        status = self._script.pop(0)
        if status is not None:
            raise SidecarError("no answer", status)
        return STATE

    @property
    def left(self) -> int:
        """How often it was not asked."""
        return len(self._script)


def phases(sidecar: Asked, looks: int) -> list[PodPhase]:
    """Phase of the pod in each of some looks."""
    index = Index(ignore)
    body: dict[str, Any] = live_pod()
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    index.put_pod({**body, "status": {"podIP": "127.0.0.1", "phase": "Running", "conditions": [ready]}})
    prometheus = Prometheus(cast("Http", None), None, 5.0)
    graces = {"node_lost_seconds": 40.0, "transition_grace_seconds": 900.0}
    gatherer = Gatherer(index, cast("Sidecars", sidecar), prometheus, Budgets(index, {}), **graces)
    spec = {"model": {"uri": "hf://org/llama"}, "engine": {"kind": "Simulated"}}
    service = InferenceService.model_validate({**live_service("uid-1", 10), "spec": spec})

    async def look() -> list[PodPhase]:
        found = [await gatherer.gather(service, InferenceServiceStatus(), 1000.0 + n, 0.0) for n in range(looks)]
        return [gathered.snapshot.pods[0].phase for gathered in found]

    return asyncio.run(look())


def test_one_late_answer_of_a_sidecar_that_has_answered_before_changes_nothing() -> None:
    sidecar = Asked(None, 0, None)
    assert phases(sidecar, 2) == [PodPhase.SERVING, PodPhase.SERVING]
    assert sidecar.left == 0


def test_silence_is_believed_the_second_time_and_a_refusal_at_once() -> None:
    assert phases(Asked(None, 0, 0), 2) == [PodPhase.SERVING, PodPhase.UNKNOWN]
    refusing = Asked(None, 401, None)
    assert phases(refusing, 2) == [PodPhase.SERVING, PodPhase.UNKNOWN]
    assert refusing.left == 1


def test_a_sidecar_that_has_never_answered_is_asked_once() -> None:
    sidecar = Asked(0, None)
    assert phases(sidecar, 1) == [PodPhase.UNKNOWN]
    assert sidecar.left == 1
