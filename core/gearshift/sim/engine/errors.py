# SPDX-License-Identifier: Apache-2.0
"""Errors of the OpenAI routes in vLLM's shape."""

from http import HTTPStatus
from typing import Any

from aiohttp import web


class ApiError(Exception):
    """An error answer: ``{"error": {"message", "type", "param", "code"}}``."""

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.param = param

    @property
    def body(self) -> dict[str, Any]:
        """JSON body."""
        kind = "BadRequestError" if self.status is HTTPStatus.BAD_REQUEST else self.status.phrase.replace(" ", "")
        kind = kind if kind.endswith("Error") else kind + "Error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": int(self.status)}}

    def response(self) -> web.Response:
        """The answer."""
        return web.json_response(self.body, status=int(self.status))


def unknown_model(model: str) -> ApiError:
    """The 404 for a model that is not served."""
    return ApiError(f"The model `{model}` does not exist.", HTTPStatus.NOT_FOUND, "model")
