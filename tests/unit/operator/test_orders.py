# SPDX-License-Identifier: Apache-2.0
"""What an order to a sidecar says."""

from typing import Any, cast

import pytest

from gearshift.api.vocabulary import PodPhase, TransitionKind
from gearshift.api.wire import TransitionRequest, TransitionStatus
from gearshift.operator.gather import Gathered
from gearshift.operator.lease import Lease
from gearshift.operator.orders import Orders
from gearshift.operator.sidecars import Sidecars
from gearshift.policy.plan import Plan, Transit
from gearshift.policy.snapshot import Snapshot
from tests.unit.operator.builders import spec

SHIFT: dict[str, Any] = {"layouts": ["Shift", "TP"], "shiftThresholdTokens": 64}


class FakeSidecars:
    """Takes every order."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, TransitionRequest]] = []

    async def order(self, address: str, request: TransitionRequest) -> TransitionStatus:
        self.taken.append((address, request))
        fields = {"id": request.id, "kind": request.kind, "to": request.to, "from": "TP"}
        return TransitionStatus.model_validate({**fields, "phase": PodPhase.DRAINING, "started_at": 1.0})


class FakeLease:
    """Always leads."""

    token = 3

    def check(self) -> None:
        """It does."""


async def ordered(transit: Transit) -> TransitionRequest:
    """The order that a transition becomes."""
    service = spec(engine={"kind": "Simulated"}, parallelism=SHIFT, policy={"drainTimeout": "7s"})
    look = Snapshot(1.0, "prod", "chat", "u", 1, service, "new")
    sidecars = FakeSidecars()
    orders = Orders(cast("Sidecars", sidecars), cast("Lease", FakeLease()))
    gathered = Gathered(look, None, (), {"chat-0": "10.0.0.1"}, 0)
    taken = await orders.order(Plan("abc", (transit,)), transit, gathered)
    assert isinstance(taken, TransitionStatus)
    ((address, request),) = sidecars.taken
    assert (address, request.id, request.fencing_token, request.expected_epoch) == ("10.0.0.1", "abc-chat-0", 3, 5)
    assert request.drain_timeout == "7s"
    return request


@pytest.mark.parametrize(
    ("kind", "to", "asked", "drain", "threshold"),
    [
        (TransitionKind.LAYOUT, "Shift", 64, "None", 64),
        (TransitionKind.LAYOUT, "Shift", None, "Wait", 64),
        (TransitionKind.LAYOUT, "TP", None, "Wait", None),
        (TransitionKind.ROLE, "Decode", None, "Wait", None),
    ],
)
async def test_an_order_to_shift_carries_the_threshold_and_one_within_shift_does_not_drain(
    kind: TransitionKind, to: str, asked: int | None, drain: str, threshold: int | None
) -> None:
    request = await ordered(Transit("chat-0", kind, to, 5, "Because", asked))
    assert (request.kind, request.to) == (kind, to)
    assert (request.drain, request.shift_threshold_tokens) == (drain, threshold)
