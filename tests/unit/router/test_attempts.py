# SPDX-License-Identifier: Apache-2.0
"""What a request learns from its failed attempts."""

import asyncio

from gearshift.router.attempts import LOST_ATTEMPTS, PAUSE_SECONDS, Attempts
from gearshift.router.endpoints import Endpoint
from gearshift.router.fleet import Pod
from gearshift.router.upstream import AttemptError, Reason


def pod(name: str) -> Pod:
    return Pod(Endpoint(name, f"uid-{name}", "10.0.0.1"))


def error(at: Pod, reason: Reason = Reason.CONNECT) -> AttemptError:
    return AttemptError(reason, at, "words")


def test_refusals_lengthen_the_pause_and_never_exhaust() -> None:
    attempts, a = Attempts(), pod("a")
    assert attempts.pause_seconds == 0.0
    pauses = []
    for _ in range(100):
        attempts.failed(error(a))
        pauses.append(attempts.pause_seconds)
    assert (pauses[0], pauses[-1]) == PAUSE_SECONDS
    assert pauses == sorted(pauses)
    assert not attempts.exhausted


def test_lost_engines_exhaust() -> None:
    attempts = Attempts()
    for number in range(LOST_ATTEMPTS):
        assert not attempts.exhausted
        attempts.failed(error(pod(str(number)), Reason.RESET))
    assert attempts.exhausted


def test_only_another_reason_of_a_pod_is_news() -> None:
    attempts, a, b = Attempts(), pod("a"), pod("b")
    news = [attempts.failed(error(*one)) for one in ((a,), (a,), (b,), (a, Reason.RESET), (b,))]
    assert news == [True, False, True, True, False]
    assert list(attempts.pods) == [a, b]
    assert attempts.told == "pod a: reset; pod b: connect"


async def test_waiting_ends_so_long_after_it_began_and_begins_anew_with_a_lost_engine() -> None:
    attempts, now = Attempts(), asyncio.get_running_loop().time()
    assert not attempts.waited
    until = attempts.wait_until(30.0)
    assert until >= now + 30.0
    attempts.failed(error(pod("a")))
    await asyncio.sleep(0.001)
    assert (attempts.wait_until(30.0), attempts.waited) == (until, True)
    attempts.failed(error(pod("a"), Reason.RESET))
    assert attempts.wait_until(30.0) > until
