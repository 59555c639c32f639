# SPDX-License-Identifier: Apache-2.0
"""Import it before all else in a program that runs as process 1 of a container: that is its whole effect.

The kernel drops a signal for process 1 that has no handler for it. A pod that is deleted while its containers start
would wait out its grace period, because SIGTERM came during the imports. So the command of a container begins with
`BLOCKED`: a blocked signal is kept, even for process 1, from the first instruction of Python on. This module then
handles SIGTERM, by an end at once, and unblocks it; one that has come meanwhile takes effect here.
"""

import os
import signal
from types import FrameType
from typing import Final

BLOCKED: Final = ("/usr/bin/env", "--block-signal=TERM")
"""Start of the command of a container whose program imports this module; needs coreutils 8.31 or later."""


def _end(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)  # nothing to undo yet, and an exception could be lost among the imports


if os.getpid() == 1:
    signal.signal(signal.SIGTERM, _end)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
