# SPDX-License-Identifier: Apache-2.0
"""The transition table over every pair of phase and event, against an expectation written down independently."""

from itertools import product

import pytest

from gearshift.api.vocabulary import PodPhase
from gearshift.sidecar.machine import BOOKKEEPING, IN_FLIGHT, PHASES, Effect, Event, IllegalEventError, step

LEGAL = {
    "Starting": "EngineReady>Serving StartRefused>Failed TargetFound>Verifying OriginFound>RollingBack "
    "EngineLost>Starting Terminate>Terminating",
    "Serving": "Ordered>Draining EngineLost>Starting Terminate>Terminating",
    "Draining": "Drained>Switching DrainTimedOut>Serving EngineLost>Starting Terminate>Terminating",
    "Switching": "Switched>Verifying SwitchFailed>RollingBack EngineLost>Starting Terminate>Terminating",
    "Verifying": "Verified>Publishing VerifyFailed>RollingBack EngineLost>Starting Terminate>Terminating",
    "Publishing": "Confirmed>Serving EngineLost>Starting Terminate>Terminating",
    "RollingBack": "Restored>Serving RestoreFailed>Failed EngineLost>Starting Terminate>Terminating",
    "Terminating": "Drained>Terminating DrainTimedOut>Terminating EngineLost>Terminating Terminate>Terminating",
    "Failed": "EngineLost>Failed Terminate>Terminating",
}
PAIRS = list(product(PHASES, Event))


def expected(phase: PodPhase, event: Event) -> str | None:
    return dict(item.split(">") for item in LEGAL[phase.value].split()).get(event.value)


@pytest.mark.parametrize(("phase", "event"), PAIRS, ids=lambda item: item.value)
def test_every_pair_is_a_known_step_or_a_named_refusal(phase: PodPhase, event: Event) -> None:
    wanted = expected(phase, event)
    if wanted is None:
        with pytest.raises(IllegalEventError, match=f"{event.value} is illegal in phase {phase.value}"):
            step(phase, event)
    else:
        assert step(phase, event).phase.value == wanted


def steps() -> list[tuple[PodPhase, Event, PodPhase, tuple[Effect, ...]]]:
    found: list[tuple[PodPhase, Event, PodPhase, tuple[Effect, ...]]] = []
    for phase, event in PAIRS:
        if expected(phase, event) is not None:
            outcome = step(phase, event)
            found.append((phase, event, outcome.phase, outcome.effects))
    return found


def test_only_a_step_to_serving_admits_and_every_step_to_serving_does() -> None:
    for _, _, after, effects in steps():
        assert (Effect.ADMIT in effects) == (after is PodPhase.SERVING)


def test_every_way_out_of_serving_unpublishes() -> None:
    for before, _, after, effects in steps():
        if before is PodPhase.SERVING:
            assert after is not PodPhase.SERVING
            assert Effect.UNPUBLISH in effects


def test_the_epoch_grows_at_the_proof_and_nowhere_else() -> None:
    commits = [(before, event) for before, event, _, effects in steps() if Effect.COMMIT in effects]
    assert commits == [(PodPhase.VERIFYING, Event.VERIFIED)]


def test_a_transition_ends_once_on_every_way_out_of_it() -> None:
    ends = {Effect.FINISH_COMMITTED, Effect.FINISH_ROLLED_BACK, Effect.FINISH_FAILED}
    for before, _, after, effects in steps():
        if before in IN_FLIGHT and after not in IN_FLIGHT:
            assert len(ends.intersection(effects)) == 1


def test_nothing_is_undone_after_the_proof() -> None:
    for before, _, _, effects in steps():
        if before is PodPhase.PUBLISHING:
            assert Effect.FINISH_ROLLED_BACK not in effects
            assert Effect.RESTORE not in effects


def test_a_step_starts_at_most_one_effect_that_takes_time() -> None:
    for _, _, _, effects in steps():
        assert sum(effect not in BOOKKEEPING for effect in effects) <= 1


def test_every_waiting_phase_has_been_given_something_to_wait_for() -> None:
    for before, event, after, effects in steps():
        waits = after in IN_FLIGHT or after is PodPhase.STARTING
        if waits or (after is PodPhase.TERMINATING and before is not PodPhase.TERMINATING):
            assert any(effect not in BOOKKEEPING for effect in effects), (before, event)
