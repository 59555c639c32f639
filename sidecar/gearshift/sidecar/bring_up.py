# SPDX-License-Identifier: Apache-2.0
"""The effect `BringUp`: from an engine process that answers to a pod that has proven that it serves.

It also settles what an earlier sidecar left unfinished, by asking the engine what it is.
"""

import asyncio
import logging
from typing import Final

from gearshift.api import reasons
from gearshift.sidecar.engine_client import EngineCallError
from gearshift.sidecar.ledger import Detail, Record
from gearshift.sidecar.machine import Event
from gearshift.sidecar.pod import Pod, Signal
from gearshift.sidecar.switching import make_live
from gearshift.sidecar.target import committed, ordered
from gearshift.sidecar.verification import contradictions, verify

log = logging.getLogger(__name__)
ATTEMPTS: Final = 3
"""Probes that may fail before an engine that answers nothing else wrong is restarted."""


async def bring_up(pod: Pod, record: Record) -> Signal:
    """Wait for the active engine and have it prove the committed state."""
    keeper = pod.residents.serving(record.layout)
    await keeper.up.wait()
    if record.order is not None:
        return await _resolve(pod, record)
    target = committed(record)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            await make_live(pod, target, strict=False)
            await verify(pod, target)
        except EngineCallError as error:
            log.warning("attempt %d of %d: %s", attempt, ATTEMPTS, error)
            pod.note(str(error))
        else:
            return Event.ENGINE_READY, Detail()
        await asyncio.sleep(pod.settings.timings.start_poll)
    keeper.restart(f"failed {ATTEMPTS} probes")
    return await _until_replaced()


async def _resolve(pod: Pod, record: Record) -> Signal:
    """Whether the engine carried out the order that the earlier sidecar gave, or not."""
    target = ordered(record)
    try:
        state = await pod.residents.serving(target.layout).client.state()
        wrong = contradictions(state, target)
    except EngineCallError as error:
        wrong = [str(error)]
    if not wrong:
        return Event.TARGET_FOUND, Detail(message="the sidecar restarted after the switch")
    return Event.ORIGIN_FOUND, Detail(reasons.SIDECAR_RESTARTED, f"the sidecar restarted: {', '.join(wrong)}")


async def _until_replaced() -> Signal:
    """The loss of the engine ends this effect from outside."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")
