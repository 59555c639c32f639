# SPDX-License-Identifier: Apache-2.0
"""Warm pods beyond the demand, up to the ceiling."""

import pytest

from gearshift.api import reasons
from gearshift.api.vocabulary import Layout
from gearshift.policy.decide import decide
from gearshift.policy.memory import fold
from gearshift.policy.plan import CreatePod, Memory, Plan
from gearshift.policy.rates import EngineRates
from gearshift.policy.samples import Sample
from gearshift.policy.sizing import Sizing
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.standby import with_standby
from tests.unit.policy.build import NOW, pod, seasoned, snapshot, spec

SAMPLE = Sample(NOW, 1.5, 0)
RATES = {Layout.TP: EngineRates(10_000.0, 0.01, 0.0001, 0.2)}


@pytest.mark.parametrize(
    ("found", "spare", "expected"),
    [
        (Sizing(2, 3, 1, sample=SAMPLE), 0, (2, 3, 1)),
        (Sizing(2, 3, 1, sample=SAMPLE), 2, (4, 5, 1)),
        (Sizing(1, 3, 3), 2, (3, 3, 3)),
        (Sizing(1, 2, 1), 2, (3, 3, 1)),
        (Sizing(6, 4, 4), 2, (6, 4, 4)),
        (Sizing(1, 2, 1), 0, (1, 2, 1)),
    ],
)
def test_spare_pods_come_on_top_of_a_known_demand(found: Sizing, spare: int, expected: tuple[int, int, int]) -> None:
    """Without a yardstick pods are counted from those that there are: more on top would never end."""
    after = with_standby(found, spare)
    assert (after.up, after.down, after.carry) == expected


def idle(standby: int, most: int, *, hold: bool = False) -> Snapshot:
    """One idle pod of a model that is known."""
    scaling = {"owner": "Gearshift", "standby": standby}
    service = spec(scaling=scaling, roles=[{"name": "Unified", "replicas": 1, "max": most}])
    return snapshot([pod(0)], service, rates=RATES, hold=hold)


def decided(state: Snapshot, memory: Memory) -> Plan:
    """One tick."""
    return decide(state, fold(memory, state))


@pytest.mark.parametrize(("standby", "most", "pods"), [(0, 8, 1), (2, 8, 3), (2, 2, 2)])
def test_an_idle_service_keeps_its_standby_within_max(standby: int, most: int, pods: int) -> None:
    plan = decided(idle(standby, most), seasoned())
    assert plan.pods == pods
    assert [type(action) for action in plan.actions] == [CreatePod] * (pods - 1)


def test_a_hold_keeps_the_number_and_says_what_is_wanted() -> None:
    plan = decided(idle(2, 8, hold=True), seasoned())
    assert (plan.pods, plan.actions, plan.reason) == (1, (), reasons.HUMAN_HOLD)
    assert plan.message == "the hold annotation is set; 3 pods instead of 1"
    assert len(plan.proposal) == 2
