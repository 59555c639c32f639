# SPDX-License-Identifier: Apache-2.0
"""The operator's side of `gearshift.api.wire`: ask pods for their state, order transitions."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gearshift.api import names
from gearshift.api.wire import ControlError, PodState, TransitionRequest, TransitionStatus
from gearshift.operator.errors import SidecarError
from gearshift.operator.http import Answer, Http, HttpError


class Sidecars:
    """Client of the control API of all pods."""

    def __init__(self, http: Http, token_file: str) -> None:
        self._http = http
        self._token_file = Path(token_file)

    async def state(self, address: str) -> PodState:
        """State of the pod at an IP address.

        Raises:
            SidecarError: no answer, or a refusal.
        """
        answer = await self._call("GET", address, "/v1/state", None, 1.5)
        try:
            return PodState.model_validate(answer.body)
        except ValidationError as problem:
            raise SidecarError(f"{address}: state is not as agreed: {problem}") from problem

    async def order(self, address: str, request: TransitionRequest) -> TransitionStatus:
        """Order a transition.

        Raises:
            SidecarError: no answer, or a refusal with the sidecar's reason.
        """
        body = request.model_dump(mode="json", by_alias=True)
        answer = await self._call("POST", address, "/v1/transitions", body, 5.0)
        try:
            return TransitionStatus.model_validate(answer.body)
        except ValidationError as problem:
            raise SidecarError(f"{address}: status is not as agreed: {problem}") from problem

    async def _call(self, method: str, address: str, path: str, body: Any, timeout_seconds: float) -> Answer:
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{names.PORT_CONTROL}{path}"
        try:
            answer = await self._http.call(
                method, url, body=body, bearer=self._token(), timeout_seconds=timeout_seconds, keep=False
            )
        except HttpError as problem:
            raise SidecarError(str(problem)) from problem
        if answer.status >= 400:
            raise _refusal(url, answer)
        return answer

    def _token(self) -> str:
        """The projected token; read each time, because the kubelet rotates it."""
        try:
            return self._token_file.read_text().strip()
        except OSError as problem:
            raise SidecarError(f"token file {self._token_file}: {problem}") from problem


def _refusal(url: str, answer: Answer) -> SidecarError:
    try:
        error = ControlError.model_validate(answer.body)
    except ValidationError:
        return SidecarError(f"{url}: status {answer.status}", answer.status)
    return SidecarError(f"{url}: {error.message}", answer.status, error.reason, error.fencing_token)
