# SPDX-License-Identifier: Apache-2.0
"""What outlives a tick."""

from dataclasses import replace
from datetime import UTC, datetime

from gearshift.api.v1alpha1.status import InferenceServiceStatus, TransitionRecord
from gearshift.api.vocabulary import PodPhase, Role, TransitionKind, TransitionResult
from gearshift.policy.memory import fold, rebuild
from gearshift.policy.plan import Memory
from gearshift.policy.snapshot import InFlight
from tests.unit.policy.build import LONG_AGO, NOW, UNKNOWN, both, metrics, pod, pods, seasoned, snapshot, split

BUSY = metrics(waiting=100)


def test_evidence_begins_lasts_and_ends() -> None:
    """From the first snapshot that wants it to the first that does not."""
    state = snapshot([pod(0)], metrics=BUSY)
    first = fold(seasoned(), state)
    assert first.evidence_since == {"Layout:DP": NOW}
    later = fold(first, replace(state, at=NOW + 20))
    assert later.evidence_since == {"Layout:DP": NOW}
    calm = fold(later, replace(state, at=NOW + 21, metrics=metrics(waiting=2)))
    assert calm.evidence_since == {}


def test_evidence_that_cannot_be_judged_is_dropped() -> None:
    """It has to last without a gap."""
    state = snapshot([pod(0)], metrics=metrics(waiting=UNKNOWN))
    assert fold(seasoned("Layout:DP"), state).evidence_since == {}


def test_no_evidence_is_gathered_on_what_an_override_orders() -> None:
    """So that what it did is judged anew when it ends; the other dimension goes on."""
    readings = both(metrics(waiting=100), metrics(Role.PREFILL, ttft_p90=9.0), metrics(Role.DECODE))
    before = seasoned("Layout:DP", "Role:Prefill")
    for order, left in (({"layout": "TP"}, {"Role:Prefill"}), ({"role": "Decode"}, {"Layout:DP"})):
        service = split(2, 2, override={**order, "until": "2100-01-01T00:00:00Z"})
        state = snapshot(pods(2, 2), service, metrics=readings)
        assert set(fold(before, state).evidence_since) == left


def test_roles_and_layouts_gather_evidence_side_by_side() -> None:
    """Each under its own key."""
    readings = both(metrics(waiting=100), metrics(Role.PREFILL, ttft_p90=9.0), metrics(Role.DECODE))
    state = snapshot(pods(2, 2), split(2, 2), metrics=readings)
    assert fold(seasoned(), state).evidence_since == {"Layout:DP": NOW, "Role:Prefill": NOW}


def test_a_transition_is_stamped_while_it_runs() -> None:
    """So cooldown counts from its end, whoever ordered it."""
    flight = InFlight("t", "chat-0", TransitionKind.LAYOUT, "DP", NOW - 9)
    ordered = fold(seasoned(), snapshot([pod(0), pod(1)], in_flight=(flight,)))
    seen = fold(seasoned(), snapshot([pod(0, phase=PodPhase.DRAINING), pod(1)]))
    for memory in (ordered, seen):
        assert memory.transition_at == {"chat-0": NOW}
        assert memory.last_transition_at == NOW


def test_a_transition_between_two_ticks_is_stamped_by_what_the_pod_says() -> None:
    """It serves since its end."""
    memory = fold(seasoned(), snapshot([pod(0, epoch=1, since=NOW - 3), pod(1, since=NOW - 1)]))
    assert memory.transition_at == {"chat-0": NOW - 3}
    assert memory.last_transition_at == NOW - 3


def test_a_pod_that_is_gone_is_forgotten_but_not_the_cooldown() -> None:
    """Memory does not grow with the pods that ever were."""
    memory = fold(seasoned(transition_at={"chat-9": NOW - 5}, last_transition_at=NOW - 5), snapshot([pod(0)]))
    assert memory.transition_at == {}
    assert memory.last_transition_at == NOW - 5


def test_folding_twice_is_folding_once() -> None:
    """A tick may be repeated."""
    state = snapshot([pod(0, epoch=2, since=NOW - 60), pod(1)], metrics=BUSY)
    once = fold(seasoned(), state)
    assert fold(once, state) == once


def test_the_start_is_kept() -> None:
    """It marks how long this operator has watched."""
    assert fold(Memory(LONG_AGO), snapshot([pod(0)])).started_at == LONG_AGO


def moment(seconds: float) -> datetime:
    """A time of status."""
    return datetime.fromtimestamp(seconds, UTC)


def record(pod_name: str, started: float, finished: float | None) -> TransitionRecord:
    """A transition as status tells it."""
    return TransitionRecord(
        id=f"{pod_name}-{started}",
        pod=pod_name,
        kind=TransitionKind.LAYOUT,
        from_="TP",
        to="DP",
        phase=PodPhase.SERVING,
        result=TransitionResult.COMMITTED,
        started_at=moment(started),
        finished_at=None if finished is None else moment(finished),
    )


def test_rebuild_takes_the_latest_end_of_each_pod() -> None:
    """A transition that has not ended counts from its start."""
    history = [record("a", NOW - 90, NOW - 80), record("a", NOW - 50, NOW - 40), record("b", NOW - 20, None)]
    memory = rebuild(NOW, InferenceServiceStatus(transition_history=history))
    assert replace(memory, moves=()) == Memory(NOW, NOW - 20, {"a": NOW - 40, "b": NOW - 20})
    assert [(move.at, move.pod, move.from_, move.to) for move in memory.moves] == [
        (NOW - 80, "a", "TP", "DP"), (NOW - 40, "a", "TP", "DP"), (NOW - 20, "b", "TP", "DP"),
    ]  # fmt: skip
    assert rebuild(NOW, InferenceServiceStatus()) == Memory(NOW)
