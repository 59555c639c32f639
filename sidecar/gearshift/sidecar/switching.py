# SPDX-License-Identifier: Apache-2.0
"""Makes a layout, a role and an epoch the live ones of a pod: the effects `Switch` and `Restore`.

The same steps serve a switch, its undoing and an engine that has just been restarted: whatever already is as wanted is
left alone. Nothing here is proof of anything; that is `gearshift.sidecar.verification`'s.
"""

import asyncio
import logging
from typing import Final

from gearshift.api import reasons
from gearshift.api.engine import EngineState, LayoutRequest, RoleKnobs, RoleRequest
from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import Layout, Role
from gearshift.sidecar.engine_client import EngineCallError
from gearshift.sidecar.keeper import Keeper
from gearshift.sidecar.ledger import Detail, Record
from gearshift.sidecar.machine import Event
from gearshift.sidecar.pod import Pod, Signal
from gearshift.sidecar.target import Target, committed, ordered
from gearshift.sidecar.verification import cause, verify

log = logging.getLogger(__name__)
RESTORE_SECONDS: Final = 15.0
"""How long a restoration puts up with an unreachable engine: longer than its host takes to report an exit."""


def knobs_of(config: PodConfig, role: Role) -> RoleKnobs:
    """Scheduler settings of a role; without a word from the service an engine keeps those it started with."""
    return config.role_knobs.get(role, RoleKnobs())


def needs_role(state: EngineState, target: Target, knobs: RoleKnobs) -> bool:
    """True when the engine must be told its role: role, epoch or one of the wanted knobs differs."""
    wanted = knobs.model_dump(exclude_none=True)
    held = state.knobs.model_dump()
    return (
        state.role is not target.role
        or state.epoch != target.epoch
        or any(held[name] != value for name, value in wanted.items())
    )


async def switch(pod: Pod, record: Record) -> Signal:
    """The effect `Switch`: order the new state of the engines."""
    try:
        await make_live(pod, ordered(record), strict=True)
    except EngineCallError as error:
        return Event.SWITCH_FAILED, Detail(cause(error, reasons.SWITCH_FAILED), str(error))
    return Event.SWITCHED, Detail()


async def restore(pod: Pod, record: Record) -> Signal:
    """The effect `Restore`: order the committed state again, and prove that too."""
    target = committed(record)
    deadline = pod.monotonic() + RESTORE_SECONDS
    while True:
        try:
            await make_live(pod, target, strict=False)
            await verify(pod, target)
        except EngineCallError as error:
            if not error.unreachable or pod.monotonic() > deadline:
                return Event.RESTORE_FAILED, Detail(reasons.ROLLBACK_FAILED, f"rollback: {error}", retryable=False)
        else:
            return Event.RESTORED, Detail()
        await asyncio.sleep(pod.settings.timings.start_poll)


async def make_live(pod: Pod, target: Target, *, strict: bool) -> None:
    """Pause the other engines, wake the target's, and tell it layout, role and epoch.

    Raises:
        EngineCallError: an engine did not do it; with ``strict`` also one of the others.
    """
    keeper = pod.residents.serving(target.layout)
    for other in pod.residents.others(keeper):
        await _pause(other, strict=strict)
    state = await keeper.client.state()
    if state.paused:
        state = await keeper.client.resume()
    await _tell(pod, keeper, state, target)


async def _tell(pod: Pod, keeper: Keeper, state: EngineState, target: Target) -> None:
    config, limit = pod.settings.config, pod.settings.timings.switch
    threshold = target.threshold(state)
    if state.layout is not target.layout or state.shift_threshold_tokens != threshold:
        shifts = target.layout is Layout.SHIFT
        request = LayoutRequest(
            layout=target.layout, epoch=target.epoch, shift_threshold_tokens=threshold if shifts else None
        )
        state = await keeper.client.set_layout(request, limit)
    knobs = knobs_of(config, target.role)
    if needs_role(state, target, knobs):
        await keeper.client.set_role(RoleRequest(role=target.role, epoch=target.epoch, knobs=knobs), limit)


async def _pause(keeper: Keeper, *, strict: bool) -> None:
    try:
        if not (await keeper.client.state()).paused:
            await keeper.client.pause()
    except EngineCallError as error:
        if strict:
            raise
        log.warning("engine %s was not paused: %s", keeper.plan.name, error)
