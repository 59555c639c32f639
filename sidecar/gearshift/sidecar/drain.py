# SPDX-License-Identifier: Apache-2.0
"""The effect `Drain`: wait until the routers know that the pod takes nothing new and nothing old is left in it."""

import asyncio
import logging

from gearshift.api import reasons
from gearshift.api.engine import EngineState
from gearshift.api.vocabulary import PodPhase
from gearshift.sidecar.engine_client import EngineCallError
from gearshift.sidecar.ledger import Detail, Record
from gearshift.sidecar.machine import Event
from gearshift.sidecar.pod import Pod, Signal
from gearshift.sidecar.routers import blockers

log = logging.getLogger(__name__)


def busy(state: EngineState) -> list[str]:
    """Why the engine keeps a drain waiting; empty when it does not."""
    if state.running + state.waiting == 0:
        return []
    return [f"the engine holds {state.running} running and {state.waiting} waiting requests"]


async def drain(pod: Pod, record: Record) -> Signal:
    """Wait for routers and engine, at most for the order's time, or the pod's grace period."""
    if record.order is not None and record.order.drain == "None":
        return Event.DRAINED, Detail()
    obstacles: list[str] = []
    try:
        async with asyncio.timeout_at(_deadline(pod, record)):
            while obstacles := await _obstacles(pod, record):
                await pod.routers.wait_change(pod.settings.timings.drain_poll)
            if record.phase is PodPhase.TERMINATING:
                await _until_pulled(pod, record)
    except TimeoutError:
        return Event.DRAIN_TIMED_OUT, Detail(reasons.DRAIN_TIMEOUT, "; ".join(obstacles) or "the engine did not answer")
    return Event.DRAINED, Detail()


def _deadline(pod: Pod, record: Record) -> float:
    """On the event loop's clock."""
    now = asyncio.get_running_loop().time()
    if record.order is not None:
        return now + record.order.drain_timeout.seconds
    if pod.drain_until is None:
        return now + pod.settings.config.drain_timeout.seconds
    return now + max(0.0, pod.drain_until - pod.monotonic())


async def _obstacles(pod: Pod, record: Record) -> list[str]:
    now = pod.monotonic()
    routers = pod.routers.missing(now) or blockers(pod.routers.known(now), record.sequence)
    if routers:
        return routers
    keeper = pod.residents.serving(record.layout)
    if record.phase is PodPhase.TERMINATING and not keeper.up.is_set():
        return []
    try:
        return busy(await keeper.client.state())
    except EngineCallError as error:
        return [str(error)]


async def _until_pulled(pod: Pod, record: Record) -> None:
    """Wait until other engines have pulled the KV of finished prefills, which ends with the processes of this pod.

    Routers count a prefill until a streamed decode has begun. What is left when they owe nothing is about to be pulled
    for an answer that is not streamed, or is wanted no more: KV of probes and of clients that have gone. It is not
    waited for longer than a pull takes; a decode that comes later computes the prompt again.
    """
    held: list[str] = []
    try:
        async with asyncio.timeout(pod.settings.timings.kv_pull):
            while held := await _holding(pod, record):
                await asyncio.sleep(pod.settings.timings.drain_poll)
    except TimeoutError:
        log.warning("ending with KV that nobody has pulled: %s", ", ".join(held) or "an engine did not answer")


async def _holding(pod: Pod, record: Record) -> list[str]:
    """The engines that keep KV for others, those that a switch has paused included."""
    held = []
    for keeper in pod.residents.all(record.layout):
        if keeper.up.is_set():
            try:
                count = (await keeper.client.state()).details.get("kvHeld", "0")
            except EngineCallError as error:
                log.debug("%s", error)
                count = "0"
            if count != "0":
                held.append(f"{count} requests in engine {keeper.plan.name}")
    return held
