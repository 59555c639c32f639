# SPDX-License-Identifier: Apache-2.0
"""An API server that answers TokenReviews, and the tokens that it knows."""

import base64
import json
import time
from typing import Any

from aiohttp import web

OPERATOR = "system:serviceaccount:ops:operator"
ROUTER = "system:serviceaccount:ns:demo-router"
STRANGER = "system:serviceaccount:ns:stranger"
AUDIENCE = "gearshift.dev/sidecar"


def token_of(account: str, lifetime_seconds: float = 600.0) -> str:
    claims = {"sub": account, "exp": int(time.time() + lifetime_seconds)}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"head.{body}.signature"


class FakeKube:
    """Confirms every token of `token_of` but those for another audience."""

    def __init__(self) -> None:
        self.reviews = 0
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/apis/authentication.k8s.io/v1/tokenreviews", self._review)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _review(self, request: web.Request) -> web.Response:
        self.reviews += 1
        if request.headers.get("Authorization") != "Bearer own-token":
            return web.Response(status=401, text="who are you")
        spec: dict[str, Any] = (await request.json())["spec"]
        return web.json_response({"kind": "TokenReview", "status": self._status(spec)}, status=201)

    @staticmethod
    def _status(spec: dict[str, Any]) -> dict[str, Any]:
        parts = spec["token"].split(".")
        if len(parts) != 3 or spec["audiences"] != [AUDIENCE]:
            return {"authenticated": False, "error": "bad token"}
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        return {"authenticated": True, "user": {"username": claims["sub"]}, "audiences": [AUDIENCE]}
