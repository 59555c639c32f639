# SPDX-License-Identifier: Apache-2.0
"""An engine runs in a child process, of which nothing is left when it ends: its memory is the next engine's."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gearshift.engine.host.leftovers import remove_leftovers

END_SECONDS: Final = 10.0  # a child gets so long to end by itself
TAIL_LINES: Final = 15


class ChildFailed(RuntimeError):
    """A child did not come to a good end; the message ends with its last lines."""


@dataclass(frozen=True)
class Child:
    """``python -m MODULE WORDS``, with its output appended to a file."""

    name: str
    module: str
    words: tuple[str, ...]
    log: Path
    variables: dict[str, str] = field(default_factory=dict)

    def run(self, seconds: float | None = None) -> None:
        """Run to the end, for at most so many seconds.

        Raises:
            ChildFailed: it failed or was ended.
        """
        since, status = time.time(), None
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", self.module, *self.words],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | self.variables,
                start_new_session=True,
            )
            try:
                with suppress(subprocess.TimeoutExpired):
                    status = process.wait(seconds)
            finally:
                _end(process)
                remove_leftovers(since)
        if status != 0:
            why = f"ended after {seconds:.0f} s" if status is None else f"failed with exit status {status}"
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
            raise ChildFailed(f"{self.name}: {why}; the end of {self.log}:\n{tail}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the child's whole session, politely where the child still runs."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
