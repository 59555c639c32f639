# SPDX-License-Identifier: Apache-2.0
"""Events: each once, none lost for good, none too long."""

import asyncio
from typing import Any, cast

from gearshift.operator.errors import Unavailable
from gearshift.operator.events import Events
from gearshift.operator.kube import Kube

META = {"namespace": "prod", "name": "chat", "uid": "uid-1"}


class Recorder:
    """Keeps the events that it takes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.down = False

    async def create_event(self, body: dict[str, Any]) -> None:
        """Take one, unless it is down."""
        if self.down:
            raise Unavailable("POST", "down")
        self.notes.append(body["note"])


def post(events: Events, note: str, at: float) -> None:
    """Post about the service."""
    asyncio.run(events.post(META, "PodRefused", "Reconcile", note, at, warning=True))


def test_the_same_words_are_posted_once_in_ten_minutes() -> None:
    kube = Recorder()
    events = Events(cast("Kube", kube), "me")
    for at in (0.0, 5.0, 599.0, 601.0):
        post(events, "exceeded quota", at)
    post(events, "other words", 602.0)
    assert kube.notes == ["exceeded quota", "exceeded quota", "other words"]


def test_an_event_that_could_not_be_posted_is_posted_the_next_time() -> None:
    kube = Recorder()
    events = Events(cast("Kube", kube), "me")
    kube.down = True
    post(events, "exceeded quota", 0.0)
    kube.down = False
    post(events, "exceeded quota", 5.0)
    assert kube.notes == ["exceeded quota"]


def test_a_long_note_is_cut_by_bytes_between_characters() -> None:
    kube = Recorder()
    post(Events(cast("Kube", kube), "me"), "é" * 1000 + "x", 0.0)
    assert kube.notes == ["é" * 512]
