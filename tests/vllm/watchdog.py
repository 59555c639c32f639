# SPDX-License-Identifier: Apache-2.0
"""Ends the servers of a test run that was killed: vLLM's processes would otherwise go on, each on a whole core."""

import subprocess
import sys
from functools import cache

_WATCH = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
groups = [int(line) for line in sys.stdin]
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class Watchdog:
    """A process that outlives this one and then kills the process groups that it was told of."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", _WATCH]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, text=True)

    def watch(self, group: int) -> None:
        """Kill this process group when the own process has ended, however it ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{group}\n")
        self._process.stdin.flush()


@cache
def watchdog() -> Watchdog:
    """The one of this process."""
    return Watchdog()
