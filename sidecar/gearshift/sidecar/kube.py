# SPDX-License-Identifier: Apache-2.0
"""The one question that a sidecar asks the Kubernetes API server: whose token is this (TokenReview)."""

import ssl
from dataclasses import dataclass

import aiohttp
from pydantic import Field, ValidationError

from gearshift.api.base import TolerantModel
from gearshift.sidecar.settings import ApiServer

_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


class KubeError(RuntimeError):
    """The API server gave no answer to the question; the message says why."""


@dataclass(frozen=True, slots=True)
class Review:
    """The API server's word about a token; the account is empty when the token is not valid for the audience."""

    account: str
    problem: str = ""


class _User(TolerantModel):
    username: str = ""


class _Status(TolerantModel):
    authenticated: bool = False
    user: _User = Field(default_factory=_User)
    audiences: list[str] = Field(default_factory=list)
    error: str = ""


class _Answer(TolerantModel):
    status: _Status


class TokenReviewer:
    """Asks with the pod's own token, which is read anew each time because it is rotated."""

    def __init__(self, session: aiohttp.ClientSession, server: ApiServer, audience: str, timeout: float) -> None:
        self._session = session
        self._server = server
        self._audience = audience
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._tls: ssl.SSLContext | None = None

    async def review(self, token: str) -> Review:
        """Ask about one token.

        Raises:
            KubeError: the API server could not be asked, or refused to answer.
        """
        body: dict[str, object] = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._audience]},
        }
        try:
            own = self._server.token_file.read_text(encoding="utf-8").strip()
            text = await self._post(body, own)
            status = _Answer.model_validate_json(text).status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise KubeError(f"TokenReview: {error!r}") from error
        except ValidationError as error:
            raise KubeError("TokenReview: the answer is no TokenReview") from error
        return self._judge(status)

    async def _post(self, body: dict[str, object], own: str) -> str:
        headers = {"Authorization": f"Bearer {own}"}
        url = self._server.url + _PATH
        async with self._session.post(
            url, json=body, headers=headers, ssl=self._context(), timeout=self._timeout
        ) as response:
            text = await response.text()
            if response.status not in {200, 201}:
                raise KubeError(f"TokenReview: {response.status} {text[:200]}")
            return text

    def _judge(self, status: _Status) -> Review:
        if not status.authenticated:
            return Review("", status.error or "the token is not valid")
        if self._audience not in status.audiences:
            return Review("", f"the token is not for audience {self._audience}")
        return Review(status.user.username)

    def _context(self) -> ssl.SSLContext | bool:
        if self._server.ca_file is None:
            return True
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=str(self._server.ca_file))
        return self._tls
