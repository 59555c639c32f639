# SPDX-License-Identifier: Apache-2.0
"""The effect `Confirm`: wait, for a bounded time, until the routers act on the published state."""

import logging

from gearshift.sidecar.ledger import Detail, Record
from gearshift.sidecar.machine import Event
from gearshift.sidecar.pod import Pod, Signal
from gearshift.sidecar.routers import unconfirmed

log = logging.getLogger(__name__)


async def confirm(pod: Pod, record: Record) -> Signal:
    """Complete the proof by the number of routers that have confirmed the published state.

    A router that is late is logged and not waited for: it takes part again with its next confirmation.
    """
    deadline = pod.monotonic() + pod.settings.timings.confirm
    while True:
        now = pod.monotonic()
        views = [view for view in pod.routers.known(now) if view.streams > 0]
        late = unconfirmed(views, record.sequence)
        if not late or now >= deadline:
            break
        await pod.routers.wait_change(min(deadline - now, pod.settings.timings.drain_poll))
    if late:
        log.warning("state %d was published without the word of %s", record.sequence, ", ".join(late))
    status = record.transition
    if status is None or status.proof is None:
        raise ValueError("publishing without a proof")
    proof = status.proof.model_copy(update={"routers": len(views) - len(late)})
    return Event.CONFIRMED, Detail(proof=proof)
