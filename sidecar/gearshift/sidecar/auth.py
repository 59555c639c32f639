# SPDX-License-Identifier: Apache-2.0
"""Who is calling: reviews of bearer tokens, remembered so that the data path outlives an outage of the API server.

A review is fresh for a minute. While the API server can't be asked, a token that it once confirmed counts until the
token's own expiry; one that it never confirmed does not.
"""

import base64
import binascii
import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from gearshift.sidecar.kube import KubeError, Review

log = logging.getLogger(__name__)
FRESH_SECONDS: Final = 60.0
REFUSED_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 15.0
"""How long an API server that did not answer is not asked about tokens that it confirmed before."""
UNKNOWN_RETRY_SECONDS: Final = 1.0
"""The same for all other tokens."""
REMEMBERED: Final = 512


class AuthUnavailableError(RuntimeError):
    """The API server can't be asked, and this token was never confirmed."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    review: Review
    fresh_until: float
    expires_at: float  # of the token; seconds since the epoch

    def vouches(self, now: float) -> bool:
        """True when the token was confirmed once and has not expired."""
        return bool(self.review.account) and now < self.expires_at


class Authenticator:
    """Reviews tokens. Times are seconds since the epoch, because tokens say so."""

    def __init__(self, review: Callable[[str], Awaitable[Review]], clock: Callable[[], float]) -> None:
        self._review = review
        self._clock = clock
        self._known: OrderedDict[str, _Remembered] = OrderedDict()
        self._failed_at = 0.0  # when the API server last did not answer
        self._asking: set[str] = set()

    async def account(self, token: str) -> Review:
        """The account of a token.

        Raises:
            AuthUnavailableError: the API server can't be asked, and this token was never confirmed.
        """
        key = hashlib.sha256(token.encode()).hexdigest()
        known = self._known.get(key)
        now = self._clock()
        if known is not None and now < known.fresh_until:
            return known.review
        vouched = known is not None and known.vouches(now)
        pause = RETRY_SECONDS if vouched else UNKNOWN_RETRY_SECONDS
        if (vouched and key in self._asking) or 0 <= now - self._failed_at < pause:
            return self._fall_back(known, now, "it did not answer just now")
        return await self._ask(key, token, known)

    async def _ask(self, key: str, token: str, known: _Remembered | None) -> Review:
        self._asking.add(key)
        try:
            review = await self._review(token)
        except KubeError as error:
            self._failed_at = self._clock()
            log.warning("%s", error)
            return self._fall_back(known, self._failed_at, str(error))
        finally:
            self._asking.discard(key)
        self._remember(key, token, review)
        return review

    def _fall_back(self, known: _Remembered | None, now: float, why: str) -> Review:
        if known is not None and known.vouches(now):
            return known.review
        raise AuthUnavailableError(f"the API server can't be asked about this token: {why}")

    def _remember(self, key: str, token: str, review: Review) -> None:
        now = self._clock()
        expires_at = expiry(token)
        fresh_until = now + (FRESH_SECONDS if review.account else REFUSED_SECONDS)
        if expires_at:
            fresh_until = min(fresh_until, max(expires_at, now))
        self._known[key] = _Remembered(review, fresh_until, expires_at)
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            del self._known[self._least_worth()]

    def _least_worth(self) -> str:
        """The oldest refusal, so that no flood of bad tokens pushes out a confirmed one; else the oldest of all."""
        refusals = (key for key, known in self._known.items() if not known.review.account)
        return next(refusals, next(iter(self._known)))


def expiry(token: str) -> float:
    """Expiry of a JWT in seconds since the epoch, 0 without one; unverified: it is asked of reviewed tokens only."""
    parts = token.split(".")
    if len(parts) != 3:
        return 0.0
    padded = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        claims = json.loads(base64.urlsafe_b64decode(padded))
    except (binascii.Error, ValueError):
        return 0.0
    value = claims.get("exp") if isinstance(claims, dict) else None
    return float(value) if isinstance(value, int | float) else 0.0
