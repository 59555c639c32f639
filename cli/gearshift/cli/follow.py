# SPDX-License-Identifier: Apache-2.0
"""``--wait``: tells what becomes of an order, line by line, until it is done, has failed or takes too long."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from gearshift.api.vocabulary import TransitionResult
from gearshift.cli.errors import RefusedError, UnreachableError
from gearshift.cli.goals import key, waits_for
from gearshift.cli.historypage import outcome_words
from gearshift.cli.output import duration, span
from gearshift.cli.service import Service
from gearshift.cli.words import transition_words

_PAUSE_SECONDS: Final = 0.5


class Goal(Protocol):
    """What is waited for."""

    def reached(self, service: Service) -> bool:
        """Whether it is done; raises RefusedError when it can't come true."""


class Narrator:
    """Tells each step once. ``since`` is the generation from which on a decision is about the order.

    That ``plan`` waits for approval is not told: it has just been approved.
    """

    def __init__(self, seen: frozenset[str], since: int, plan: str | None = None) -> None:
        self._seen = set(seen)
        self._since = since
        self._plan = plan
        self._last = ""

    def ended(self, service: Service) -> list[str]:
        """Transitions that have ended since the last look, oldest first."""
        found = []
        for record in reversed(service.status.transition_history):
            if key(record) not in self._seen:
                self._seen.add(key(record))
                took = duration(record.duration_milliseconds)
                found.append(f"{transition_words(record)}: {record.result.value} in {took}: {outcome_words(record)}")
        return found

    def step(self, service: Service) -> list[str]:
        """What goes on, if it is not what went on at the last look."""
        step = self._step(service)
        if step is None or step == self._last:
            return []
        self._last = step
        return [step]

    def _step(self, service: Service) -> str | None:
        running, decision = service.status.transition, service.status.last_decision
        if running is not None and running.result is TransitionResult.RUNNING:
            return f"{transition_words(running)}: {running.phase.value}"
        if service.status.observed_generation < self._since or (decision is not None and decision.plan == self._plan):
            return None
        held = waits_for(service)
        return None if held is None else f"waiting: {held}"


def follow(
    read: Callable[[], Service],
    goal: Goal,
    narrator: Narrator,
    say: Callable[[str], None],
    timeout_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Service:
    """Look until the goal is reached; the service as it is then.

    Raises:
        RefusedError: it can't be reached, or was not in time; says what was last known.
    """
    deadline, last = clock() + timeout_seconds, "nothing was heard of it"
    while True:
        try:
            service = read()
        except UnreachableError as problem:
            last = str(problem)
        else:
            for line in narrator.ended(service):
                say(line)
            if goal.reached(service):
                return service
            for line in narrator.step(service):
                say(line)
            last = _last_known(service)
        if clock() >= deadline:
            raise RefusedError(f"not done after {span(timeout_seconds)}: {last}")
        pause(_PAUSE_SECONDS)


def _last_known(service: Service) -> str:
    running = service.status.transition
    if running is not None:
        return f"{service.where}: {transition_words(running)} is {running.phase.value}"
    if service.status.observed_generation < service.generation:
        return f"{service.where}: no operator has seen generation {service.generation} of the spec"
    return f"{service.where}: {waits_for(service) or 'no transition runs'}"
