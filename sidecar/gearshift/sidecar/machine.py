# SPDX-License-Identifier: Apache-2.0
"""The transition machine of a pod as one table: (phase, event) -> (next phase, effects).

It is pure, so every pair can be checked: a pair absent from the table is illegal, and `IllegalEventError` names it.
The order of a transition is fixed here: unpublish, drain, switch, verify, publish. `Publishing` is past the point of no
return (the proof exists, the epoch has grown); everything before it ends in the old state or closed.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gearshift.api.vocabulary import PodPhase


class Event(StrEnum):
    """What can happen to a pod."""

    ENGINE_READY = "EngineReady"  # the active engine answered a probe request in the committed state
    START_REFUSED = "StartRefused"  # the configuration cannot be carried out
    TARGET_FOUND = "TargetFound"  # after a restart of the sidecar: the engine is what the interrupted transition wanted
    ORIGIN_FOUND = "OriginFound"  # after a restart of the sidecar: it is not
    ORDERED = "Ordered"
    DRAINED = "Drained"
    DRAIN_TIMED_OUT = "DrainTimedOut"
    SWITCHED = "Switched"
    SWITCH_FAILED = "SwitchFailed"
    VERIFIED = "Verified"
    VERIFY_FAILED = "VerifyFailed"
    CONFIRMED = "Confirmed"  # the routers' view is the published one, or the time to wait for it is over
    RESTORED = "Restored"
    RESTORE_FAILED = "RestoreFailed"
    ENGINE_LOST = "EngineLost"  # the active engine exited or hangs
    TERMINATE = "Terminate"  # the pod is being stopped


class Effect(StrEnum):
    """What the pod does on a step. Bookkeeping effects change the record, the others are carried out by the agent."""

    UNPUBLISH = "Unpublish"
    ADMIT = "Admit"
    COMMIT = "Commit"
    FINISH_COMMITTED = "FinishCommitted"
    FINISH_ROLLED_BACK = "FinishRolledBack"
    FINISH_FAILED = "FinishFailed"
    BRING_UP = "BringUp"
    DRAIN = "Drain"
    SWITCH = "Switch"
    VERIFY = "Verify"
    CONFIRM = "Confirm"
    RESTORE = "Restore"
    SHUT_DOWN = "ShutDown"


BOOKKEEPING: Final = frozenset(
    {
        Effect.UNPUBLISH,
        Effect.ADMIT,
        Effect.COMMIT,
        Effect.FINISH_COMMITTED,
        Effect.FINISH_ROLLED_BACK,
        Effect.FINISH_FAILED,
    }
)
IN_FLIGHT: Final = frozenset(
    {PodPhase.DRAINING, PodPhase.SWITCHING, PodPhase.VERIFYING, PodPhase.PUBLISHING, PodPhase.ROLLING_BACK}
)
STABLE: Final = frozenset({PodPhase.SERVING, PodPhase.FAILED, PodPhase.TERMINATING})
PHASES: Final = tuple(phase for phase in PodPhase if phase is not PodPhase.UNKNOWN)


class IllegalEventError(ValueError):
    """An event that cannot happen in this phase."""

    def __init__(self, phase: PodPhase, event: Event) -> None:
        super().__init__(f"event {event.value} is illegal in phase {phase.value}")
        self.phase = phase
        self.event = event


@dataclass(frozen=True, slots=True)
class Step:
    """Outcome of one event."""

    phase: PodPhase
    effects: tuple[Effect, ...] = ()


_UNDO: Final = (Effect.FINISH_ROLLED_BACK, Effect.BRING_UP)
_LEAVE: Final = (Effect.UNPUBLISH, Effect.FINISH_ROLLED_BACK, Effect.DRAIN)

TABLE: Final[dict[tuple[PodPhase, Event], Step]] = {
    (PodPhase.STARTING, Event.ENGINE_READY): Step(PodPhase.SERVING, (Effect.ADMIT,)),
    (PodPhase.STARTING, Event.START_REFUSED): Step(PodPhase.FAILED, (Effect.FINISH_FAILED,)),
    (PodPhase.STARTING, Event.TARGET_FOUND): Step(PodPhase.VERIFYING, (Effect.VERIFY,)),
    (PodPhase.STARTING, Event.ORIGIN_FOUND): Step(PodPhase.ROLLING_BACK, (Effect.RESTORE,)),
    (PodPhase.STARTING, Event.ENGINE_LOST): Step(PodPhase.STARTING, (Effect.BRING_UP,)),
    (PodPhase.STARTING, Event.TERMINATE): Step(PodPhase.TERMINATING, _LEAVE),
    (PodPhase.SERVING, Event.ORDERED): Step(PodPhase.DRAINING, (Effect.UNPUBLISH, Effect.DRAIN)),
    (PodPhase.SERVING, Event.ENGINE_LOST): Step(PodPhase.STARTING, (Effect.UNPUBLISH, Effect.BRING_UP)),
    (PodPhase.SERVING, Event.TERMINATE): Step(PodPhase.TERMINATING, _LEAVE),
    (PodPhase.DRAINING, Event.DRAINED): Step(PodPhase.SWITCHING, (Effect.SWITCH,)),
    (PodPhase.DRAINING, Event.DRAIN_TIMED_OUT): Step(PodPhase.SERVING, (Effect.FINISH_ROLLED_BACK, Effect.ADMIT)),
    (PodPhase.DRAINING, Event.ENGINE_LOST): Step(PodPhase.STARTING, _UNDO),
    (PodPhase.DRAINING, Event.TERMINATE): Step(PodPhase.TERMINATING, _LEAVE),
    (PodPhase.SWITCHING, Event.SWITCHED): Step(PodPhase.VERIFYING, (Effect.VERIFY,)),
    (PodPhase.SWITCHING, Event.SWITCH_FAILED): Step(PodPhase.ROLLING_BACK, (Effect.RESTORE,)),
    (PodPhase.SWITCHING, Event.ENGINE_LOST): Step(PodPhase.STARTING, _UNDO),
    (PodPhase.SWITCHING, Event.TERMINATE): Step(PodPhase.TERMINATING, _LEAVE),
    (PodPhase.VERIFYING, Event.VERIFIED): Step(PodPhase.PUBLISHING, (Effect.COMMIT, Effect.CONFIRM)),
    (PodPhase.VERIFYING, Event.VERIFY_FAILED): Step(PodPhase.ROLLING_BACK, (Effect.RESTORE,)),
    (PodPhase.VERIFYING, Event.ENGINE_LOST): Step(PodPhase.STARTING, _UNDO),
    (PodPhase.VERIFYING, Event.TERMINATE): Step(PodPhase.TERMINATING, _LEAVE),
    (PodPhase.PUBLISHING, Event.CONFIRMED): Step(PodPhase.SERVING, (Effect.FINISH_COMMITTED, Effect.ADMIT)),
    (PodPhase.PUBLISHING, Event.ENGINE_LOST): Step(PodPhase.STARTING, (Effect.FINISH_COMMITTED, Effect.BRING_UP)),
    (PodPhase.PUBLISHING, Event.TERMINATE): Step(PodPhase.TERMINATING, (Effect.FINISH_COMMITTED, Effect.DRAIN)),
    (PodPhase.ROLLING_BACK, Event.RESTORED): Step(PodPhase.SERVING, (Effect.FINISH_ROLLED_BACK, Effect.ADMIT)),
    (PodPhase.ROLLING_BACK, Event.RESTORE_FAILED): Step(PodPhase.FAILED, (Effect.FINISH_FAILED,)),
    (PodPhase.ROLLING_BACK, Event.ENGINE_LOST): Step(PodPhase.STARTING, _UNDO),
    (PodPhase.ROLLING_BACK, Event.TERMINATE): Step(PodPhase.TERMINATING, _LEAVE),
    (PodPhase.FAILED, Event.ENGINE_LOST): Step(PodPhase.FAILED),
    (PodPhase.FAILED, Event.TERMINATE): Step(PodPhase.TERMINATING, (Effect.DRAIN,)),
    (PodPhase.TERMINATING, Event.DRAINED): Step(PodPhase.TERMINATING, (Effect.SHUT_DOWN,)),
    (PodPhase.TERMINATING, Event.DRAIN_TIMED_OUT): Step(PodPhase.TERMINATING, (Effect.SHUT_DOWN,)),
    (PodPhase.TERMINATING, Event.ENGINE_LOST): Step(PodPhase.TERMINATING),
    (PodPhase.TERMINATING, Event.TERMINATE): Step(PodPhase.TERMINATING),
}


def step(phase: PodPhase, event: Event) -> Step:
    """Next phase and effects.

    Raises:
        IllegalEventError: the pair is not in the table.
    """
    found = TABLE.get((phase, event))
    if found is None:
        raise IllegalEventError(phase, event)
    return found
