# SPDX-License-Identifier: Apache-2.0
"""How long a token's review is believed, with and without an API server."""

import asyncio
import base64
import json

import pytest

from gearshift.sidecar.auth import (
    FRESH_SECONDS,
    REMEMBERED,
    RETRY_SECONDS,
    UNKNOWN_RETRY_SECONDS,
    Authenticator,
    AuthUnavailableError,
    expiry,
)
from gearshift.sidecar.kube import KubeError, Review


def jwt(exp: object) -> str:
    return "h." + base64.urlsafe_b64encode(json.dumps({"exp": exp}).encode()).decode().rstrip("=") + ".s"


class Judge:
    """Counts reviews; its answer is set by the test."""

    def __init__(self) -> None:
        self.asked = 0
        self.now = 1000.0
        self.account = "someone"
        self.down = False
        self.gate: asyncio.Event | None = None

    async def review(self, _token: str) -> Review:
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.down:
            raise KubeError("connection refused")
        return Review(self.account, "" if self.account else "not valid")

    def authenticator(self) -> Authenticator:
        return Authenticator(self.review, lambda: self.now)


async def test_a_review_is_fresh_for_a_minute() -> None:
    judge = Judge()
    authenticator = judge.authenticator()
    token = jwt(5000)
    for now in (1000.0, 1000.0 + FRESH_SECONDS - 1):
        judge.now = now
        assert (await authenticator.account(token)).account == "someone"
    assert judge.asked == 1
    judge.now = 1000.0 + FRESH_SECONDS + 1
    judge.account = ""
    assert (await authenticator.account(token)).account == ""
    assert judge.asked == 2


async def test_a_confirmed_token_counts_until_it_expires_while_the_api_server_is_away() -> None:
    judge = Judge()
    authenticator = judge.authenticator()
    token = jwt(1600)
    await authenticator.account(token)
    judge.down = True
    judge.now = 1599.0
    assert (await authenticator.account(token)).account == "someone"
    judge.now = 1600.0
    with pytest.raises(AuthUnavailableError):
        await authenticator.account(token)


@pytest.mark.parametrize("token", [jwt(5000), jwt("soon"), "opaque", "a.!!.c", "a.bm9qc29u.c"])
async def test_a_token_never_confirmed_does_not_count_while_the_api_server_is_away(token: str) -> None:
    judge = Judge()
    judge.down = True
    with pytest.raises(AuthUnavailableError, match="can't be asked"):
        await judge.authenticator().account(token)


async def test_a_refused_token_is_not_honoured_while_the_api_server_is_away() -> None:
    judge = Judge()
    authenticator = judge.authenticator()
    judge.account = ""
    await authenticator.account(jwt(5000))
    judge.down = True
    judge.now += 100
    with pytest.raises(AuthUnavailableError):
        await authenticator.account(jwt(5000))


async def test_an_api_server_that_is_away_is_not_asked_at_every_request() -> None:
    judge = Judge()
    authenticator = judge.authenticator()
    token = jwt(5000)
    await authenticator.account(token)
    judge.down = True
    judge.now += FRESH_SECONDS + 1
    for _ in range(5):
        await authenticator.account(token)
    assert judge.asked == 2
    judge.now += RETRY_SECONDS
    judge.down = False
    await authenticator.account(token)
    assert judge.asked == 3


async def test_a_new_token_is_asked_about_again_a_second_after_a_failure() -> None:
    judge = Judge()
    authenticator = judge.authenticator()
    judge.down = True
    for _ in range(3):
        with pytest.raises(AuthUnavailableError):
            await authenticator.account(jwt(5000))
    assert judge.asked == 1
    judge.down = False
    judge.now += UNKNOWN_RETRY_SECONDS
    assert (await authenticator.account(jwt(5000))).account == "someone"


async def test_nobody_waits_for_the_renewal_of_a_confirmed_token_but_the_first() -> None:
    judge = Judge()
    authenticator = judge.authenticator()
    token = jwt(5000)
    await authenticator.account(token)
    judge.now += FRESH_SECONDS + 1
    judge.gate = asyncio.Event()
    first = asyncio.ensure_future(authenticator.account(token))
    await asyncio.sleep(0)
    assert (await authenticator.account(token)).account == "someone"
    assert judge.asked == 2
    judge.gate.set()
    assert (await first).account == "someone"


async def test_only_so_many_tokens_are_remembered() -> None:
    judge = Judge()
    authenticator = judge.authenticator()
    for number in range(REMEMBERED + 1):
        await authenticator.account(jwt(5000 + number))
    await authenticator.account(jwt(5000))
    assert judge.asked == REMEMBERED + 2


async def test_a_flood_of_bad_tokens_does_not_push_out_those_that_were_confirmed() -> None:
    judge = Judge()
    authenticator = judge.authenticator()
    await authenticator.account(jwt(5000))
    judge.account = ""
    for number in range(REMEMBERED + 1):
        await authenticator.account(jwt(6000 + number))
    judge.down = True
    assert (await authenticator.account(jwt(5000))).account == "someone"


async def test_a_clock_that_is_set_back_does_not_lock_callers_out() -> None:
    judge = Judge()
    authenticator = judge.authenticator()
    judge.down = True
    with pytest.raises(AuthUnavailableError):
        await authenticator.account(jwt(5000))
    judge.down = False
    judge.now -= 900
    assert (await authenticator.account(jwt(5000))).account == "someone"


def test_the_expiry_of_a_token() -> None:
    assert expiry(jwt(1234)) == 1234.0
    assert [expiry(token) for token in ("", "a.b", jwt("x"), "a.e30.c", "a.W10.c")] == [0.0] * 5
