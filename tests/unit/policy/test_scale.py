# SPDX-License-Identifier: Apache-2.0
"""How many pods: the truth tables of scaling, one decision after the other."""

from dataclasses import replace
from typing import Any

import pytest

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase
from gearshift.policy import scale, tuning
from gearshift.policy.decide import decide
from gearshift.policy.memory import fold
from gearshift.policy.plan import CreatePod, DeletePod, Memory, Need, ScaleMemory
from gearshift.policy.rates import EngineRates
from gearshift.policy.snapshot import Snapshot
from tests.unit.policy.build import LONG_AGO, NOW, UNKNOWN, metrics, pod, seasoned, snapshot, spec, starting

RATES = EngineRates(10_000.0, 0.01, 0.0001, request_seconds=0.1)
CALM = {"ttft_p90": 0.1, "itl_p90": 0.01}


def elastic(least: int = 1, most: int = 6, **fields: Any) -> InferenceServiceSpec:
    """A service that scales."""
    role = {"name": "Unified", "replicas": max(1, least), "min": least, "max": most}
    return spec(**{"roles": [role], "parallelism": {"layouts": ["TP"]}, **fields})


def moment(pods: int, service: InferenceServiceSpec | None = None, /, **readings: Any) -> Snapshot:
    """A snapshot of ``pods`` serving pods whose work is told by `RATES`."""
    state = snapshot([pod(n) for n in range(pods)], service or elastic(), metrics=metrics(**{**CALM, **readings}))
    return replace(state, rates={Layout.TP: RATES})


def remembering(desired: int, *needs: Need, **changes: Any) -> Memory:
    """Memory of an operator that has kept ``desired`` pods for long."""
    return seasoned(scale=ScaleMemory(desired, desired, needs, **changes))


def after(memory: Memory, state: Snapshot) -> ScaleMemory:
    """What scaling remembers after the snapshot."""
    scaled = fold(memory, state).scale
    assert scaled is not None
    return scaled


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        (elastic(1, 6), (1, 6)),
        (elastic(0, 6), (1, 6)),
        (elastic(3, 3), None),
        (elastic(1, 1), None),
        (elastic(1, 6, replicas=3), None),
        (spec(roles=[{"name": "Unified", "replicas": 2}]), None),
        (spec(roles=[{"name": role, "replicas": 1, "max": 4} for role in ("Prefill", "Decode")]), None),
    ],
)
def test_scaling_is_on_between_a_floor_and_a_higher_ceiling_of_one_role(
    service: InferenceServiceSpec, expected: tuple[int, int] | None
) -> None:
    assert scale.bounds(service) == (None if expected is None else scale.Bounds(*expected))


def test_an_unknown_signal_changes_nothing() -> None:
    state = moment(4, waiting=UNKNOWN)
    assert after(remembering(4), state).desired == 4


def test_demand_grows_the_service_at_once_up_to_its_ceiling() -> None:
    state = moment(2, prompt_tokens=20_000.0, generation_tokens=5_000.0)
    memory = fold(remembering(2), state)
    plan = decide(state, memory)
    assert plan.pods == 5
    assert {"podsNeeded": "5", "podsDesired": "5", "demandPods": "2.5"}.items() <= plan.inputs.items()
    assert [type(action) for action in plan.actions] == [CreatePod] * 3
    flooded = moment(2, prompt_tokens=1e6)
    assert after(remembering(2), flooded).desired == 6


def test_a_pod_goes_when_the_whole_stable_window_needs_fewer() -> None:
    state = moment(4)
    memory = fold(remembering(4, Need(NOW - 60, 1, 3, 1)), state)
    plan = decide(state, memory)
    assert plan.pods == 3
    assert [action.reason for action in plan.actions] == [reasons.SCALE_DOWN]


@pytest.mark.parametrize(
    ("memory", "state"),
    [
        (remembering(4, Need(NOW - 60, 4, 4, 1)), moment(4)),  # its room was needed a minute ago
        (remembering(4, Need(NOW - 800, 4, 4, 4)), moment(4)),  # a burst kept it busy a while ago
        (remembering(4, grown_at=NOW - 100), moment(4)),
        (remembering(4, shrunk_at=NOW - 10), moment(4)),
        (remembering(4, regretted_at=NOW - 500), moment(4)),
        (remembering(4, regretted_at=NOW - 1100, regrets=2), moment(4)),
        (replace(remembering(4), started_at=NOW - tuning.WATCH_SECONDS + 1), moment(4)),
        (remembering(4), replace(moment(4), hold=True)),
        (remembering(4), replace(moment(4), pods=(pod(0), pod(1), pod(2), starting(3)))),
        (remembering(4), replace(moment(4), pods=(pod(0), pod(1), pod(2), pod(3, phase=PodPhase.DRAINING)))),
        (remembering(1), moment(1)),
    ],
)
def test_a_pod_stays_while_anything_speaks_for_it(memory: Memory, state: Snapshot) -> None:
    before = memory.scale
    assert before is not None
    assert after(memory, state).desired == before.desired


@pytest.mark.parametrize(
    ("prompts", "shrunk", "regretted", "regrets"),
    [
        (20_000.0, 500, True, 2),  # the load needs the pod that went
        (4_500.0, 500, True, 1),  # its bursts do
        (20_000.0, 700, False, 0),
        (20_000.0, None, False, 1),
    ],
)
def test_to_grow_soon_after_a_loss_is_a_regret(
    prompts: float, shrunk: float | None, regretted: bool, regrets: int
) -> None:
    before = remembering(1, shrunk_at=None if shrunk is None else NOW - shrunk, regrets=1)
    found = after(before, moment(1, prompt_tokens=prompts))
    assert found.desired > 1
    assert (found.regretted_at == NOW, found.regrets, found.shrunk_at) == (regretted, regrets, None)


def test_after_a_restart_what_lives_is_kept() -> None:
    for pods, expected in ((0, 2), (1, 2), (4, 4), (9, 6)):
        state = moment(pods, elastic(2, 6))
        fresh = Memory(started_at=NOW)
        assert decide(state, fresh).pods == expected
        assert after(fresh, state).desired == expected


def test_a_failed_pod_is_replaced_not_lost() -> None:
    state = replace(moment(3), pods=(pod(0), pod(1), pod(2, failed=True, created_at=LONG_AGO)))
    plan = decide(state, fold(remembering(3), state))
    assert [type(action) for action in plan.actions] == [DeletePod, CreatePod]


def test_who_sets_replicas_decides() -> None:
    state = moment(2, elastic(1, 6, replicas=2), prompt_tokens=1e6)
    memory = fold(remembering(5), state)
    assert memory.scale is None
    plan = decide(state, memory)
    assert (plan.pods, plan.actions) == (None, ())


@pytest.mark.parametrize("prompts", [0.0, 1e6])
def test_advisory_only_says_what_it_would_do(prompts: float) -> None:
    state = moment(4, elastic(policy={"actuation": "Advisory"}), prompt_tokens=prompts)
    memory = fold(remembering(4, Need(NOW - 60, 1, 1, 1)), state)
    plan = decide(state, memory)
    assert plan.hold is not None
    assert (plan.pods, plan.hold.reason) == (4, reasons.ADVISORY)
    assert plan.hold.message == ("3 pods instead of 4" if prompts == 0 else "6 pods instead of 4")


@pytest.mark.parametrize(("prompts", "pods"), [(0.0, 3), (1e6, 6)])
def test_an_approval_moves_the_number_and_it_stays(prompts: float, pods: int) -> None:
    state = moment(4, elastic(policy={"actuation": "Approve"}), prompt_tokens=prompts)
    memory = fold(remembering(4, Need(NOW - 60, 1, 1, 1)), state)
    waiting = decide(state, memory)
    assert waiting.reason == reasons.AWAITING_APPROVAL
    approved = replace(state, approved=waiting.id)
    memory = fold(memory, approved)
    plan = decide(approved, memory)
    assert (plan.id, plan.actions, plan.pods) == (waiting.id, waiting.proposal, pods)
    later = replace(moment(pods, state.spec, prompt_tokens=prompts), at=NOW + 5, approved=waiting.id)
    assert decide(later, fold(memory, later)).actions == ()
