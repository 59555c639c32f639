# SPDX-License-Identifier: Apache-2.0
"""When a terminating engine host stops its engines."""

import pytest

from gearshift.engine.host.termination import ABSENT_SIDECAR_SECONDS, Termination, View, Why

TERMINATION = Termination(began=100.0, grace_seconds=30.0)


def view(now: float, *, sidecars: int = 1, absent_since: float = 0.0, running: int = 1, ordered: bool = False) -> View:
    return View(now=now, sidecars=sidecars, absent_since=absent_since, running=running, ordered=ordered)


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (view(100.0), None),
        (view(129.9), None),
        (view(130.0), "GracePassed"),
        (view(101.0, ordered=True), "SidecarDone"),
        (view(131.0, ordered=True), "SidecarDone"),
        (view(101.0, running=0), "NothingRuns"),
        (view(101.0, sidecars=0), None),
        (view(100.0 + ABSENT_SIDECAR_SECONDS, sidecars=0), "NoSidecar"),
        (view(110.0, sidecars=0, absent_since=109.0), None),
        (view(109.0 + ABSENT_SIDECAR_SECONDS, sidecars=0, absent_since=109.0), "NoSidecar"),
    ],
)
def test_reasons(seen: View, reason: Why | None) -> None:
    assert TERMINATION.stop_because(seen) == reason


@pytest.mark.parametrize(
    "seen", [view(100.0), view(120.5), view(100.0, sidecars=0), view(128.0, sidecars=0, absent_since=127.5)]
)
def test_the_answer_changes_exactly_at_the_next_look(seen: View) -> None:
    wait = TERMINATION.next_look(seen)
    assert wait > 0

    def later(seconds: float) -> View:
        return View(seen.now + seconds, seen.sidecars, seen.absent_since, seen.running, seen.ordered)

    assert TERMINATION.stop_because(later(wait * 0.99)) is None
    assert TERMINATION.stop_because(later(wait + 1e-9)) is not None


def test_time_left_never_is_negative() -> None:
    assert TERMINATION.left(110.0) == 20.0
    assert TERMINATION.left(500.0) == 0.0
