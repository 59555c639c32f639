# SPDX-License-Identifier: Apache-2.0
"""One state stream a pod, and the acknowledgements that let the pod's sidecar switch: the router's whole conversation
with sidecars.

Losing a stream is no event for the data path: the pod's last state stays in use, for some seconds as if it were new,
then only where there is no pod that is heard. A sidecar that comes back gets an acknowledgement at once, whatever it
remembers.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout
from pydantic import ValidationError

from gearshift.api.wire import Ack, PodState
from gearshift.router.endpoints import Endpoint
from gearshift.router.fleet import Fleet, Pod
from gearshift.router.tokens import TokenFile

log = logging.getLogger(__name__)

SILENCE_SECONDS: Final = 3.0  # a stream talks at least once a second: this much silence means that it's dead
RETRY_SECONDS: Final = (0.05, 1.0)  # first and longest pause before a lost stream is opened again
ACK_TIMEOUT_SECONDS: Final = 5.0  # more than a sidecar waits for the API server's word about a token


class StreamError(Exception):
    """A sidecar answered, but not with the state of the pod that it should be."""


class StateStreams:
    """Follows every pod of a fleet while it exists."""

    def __init__(self, fleet: Fleet, session: ClientSession, token: TokenFile, router: str) -> None:
        self._fleet = fleet
        self._session = session
        self._token = token
        self._router = router
        self._tasks: dict[Pod, asyncio.Task[None]] = {}
        self._defect: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def publish(self, endpoints: Sequence[Endpoint]) -> None:
        """Take over the endpoints of a source: follow the pods that came, leave those that went."""
        came, gone = self._fleet.set_endpoints(endpoints)
        for pod in gone:
            self._tasks.pop(pod).cancel()
        for pod in came:
            task = asyncio.create_task(self._follow(pod), name=f"state of {pod.endpoint.name}")
            task.add_done_callback(self._ended)
            self._tasks[pod] = task

    async def failed(self) -> None:
        """Wait until a defect ends the following of a pod, and raise it: its last state would stay in use for ever."""
        await self._defect

    async def close(self) -> None:
        """Stop following."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        self._defect.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None and not self._defect.done():
            self._defect.set_exception(error)

    async def _follow(self, pod: Pod) -> None:
        pause, longest = RETRY_SECONDS
        said = ""
        while True:
            try:
                async with asyncio.TaskGroup() as group:
                    acks = group.create_task(self._acknowledge(pod))
                    async with aclosing(self._states(pod)) as states:
                        async for state in states:
                            self._apply(pod, state)
                            pause, said = RETRY_SECONDS[0], ""
                    acks.cancel()
                reason = "the stream ended"
            except* (ClientError, OSError, TimeoutError, StreamError, ValidationError, ValueError) as errors:
                reason = _first(errors)
            self._fleet.lose(pod)
            if reason != said:
                log.warning("state stream of pod %s: %s; going on with its last known state", pod.endpoint.name, reason)
                said = reason
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads the load, hides nothing
            pause = min(pause * 2, longest)

    def _apply(self, pod: Pod, state: PodState) -> None:
        first = not pod.live  # a sidecar that restarted has forgotten the last acknowledgement
        if self._fleet.apply(pod, state) or first:
            pod.ack_due.set()

    async def _states(self, pod: Pod) -> AsyncGenerator[PodState, None]:
        timeout = ClientTimeout(total=None, sock_connect=SILENCE_SECONDS, sock_read=SILENCE_SECONDS)
        url, header = self._url(pod, "/v1/state/stream"), self._token.header()
        async with self._session.get(
            url,
            params={"router": self._router},
            headers=header,
            timeout=timeout,
            allow_redirects=False,
        ) as answer:
            self._token.answered(answer.status, header)
            if answer.status != 200:
                raise StreamError(f"{url} answered {answer.status}")
            async for line in answer.content:
                state = PodState.model_validate_json(line)
                if state.uid != pod.endpoint.uid:
                    raise StreamError(f"{url} speaks for pod uid {state.uid}, not {pod.endpoint.uid}")
                yield state

    async def _acknowledge(self, pod: Pod) -> None:
        """Say what this router applies, at every call for it, until cancelled; a failed call is repeated."""
        pause, longest = RETRY_SECONDS
        while True:
            await pod.ack_due.wait()
            pod.ack_due.clear()
            if pod.state is None:
                continue
            if await self._acknowledged(pod, pod.state.sequence):
                pause = RETRY_SECONDS[0]
                continue
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)
            pod.ack_due.set()

    async def _acknowledged(self, pod: Pod, sequence: int) -> bool:
        ack = Ack(router=self._router, sequence=sequence, in_flight=pod.in_flight)
        timeout = ClientTimeout(total=ACK_TIMEOUT_SECONDS)
        try:
            header = self._token.header()
            async with self._session.post(
                self._url(pod, "/v1/acks"),
                json=ack.dump(),
                headers=header,
                timeout=timeout,
                allow_redirects=False,
            ) as answer:
                self._token.answered(answer.status, header)
                if answer.status // 100 != 2:
                    log.warning(
                        "pod %s refused an acknowledgement: %s %s",
                        pod.endpoint.name,
                        answer.status,
                        (await answer.text())[:200],
                    )
                return answer.status // 100 == 2
        except (ClientError, OSError, TimeoutError) as error:
            log.info("acknowledgement to pod %s failed, trying again: %r", pod.endpoint.name, error)
            return False

    @staticmethod
    def _url(pod: Pod, path: str) -> str:
        ip = pod.endpoint.ip
        host = f"[{ip}]" if ":" in ip else ip
        return f"http://{host}:{pod.endpoint.control_port}{path}"


def _first(errors: BaseExceptionGroup[Exception]) -> str:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or repr(error)
