# SPDX-License-Identifier: Apache-2.0
"""The effect `ShutDown`: nothing is left to drain, so the engine host may stop its processes and end."""

import asyncio
import logging

from gearshift.sidecar.host_client import HostCallError
from gearshift.sidecar.ledger import Record
from gearshift.sidecar.pod import Pod

log = logging.getLogger(__name__)


async def shut_down(pod: Pod, record: Record) -> None:
    """Tell the host, again until it has understood or is gone."""
    log.info("drained at epoch %d: the engine host may end", record.epoch)
    timings = pod.settings.timings
    while True:
        try:
            await pod.host.shut_down(timings.shutdown_grace)
        except HostCallError as error:
            if error.absent:
                return
            log.warning("%s", error)
            await asyncio.sleep(timings.host_retry)
        else:
            return
