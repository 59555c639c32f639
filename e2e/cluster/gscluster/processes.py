# SPDX-License-Identifier: Apache-2.0
"""Components as detached processes: a record with process id and start time for each, so that a reused process id is
never signalled."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gscluster.errors import ClusterError
from gscluster.waiting import wait_for

LOG_LINES_OF_A_FAILURE = 15


@dataclasses.dataclass(frozen=True)
class Record:
    """What is known about a started process. `started_ticks` counts from boot, so it means something until `boot`
    changes."""

    process_id: int
    started_ticks: int
    boot: str
    argv: list[str]

    def is_running(self) -> bool:
        """Say whether this very process lives: not a zombie, and not another one that got its id."""
        return self.boot == boot_id() and started_ticks(self.process_id) == self.started_ticks


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def started_ticks(process_id: int) -> int | None:
    """Return when a process started, in clock ticks since boot, or None when it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


class ProcessTable:
    """Starts, finds and ends the named processes of one cluster.

    `folder` gets `processes/NAME.json` and `logs/NAME.log`; `join` is the control group folder that each process
    enters before it runs.
    """

    def __init__(self, folder: Path, join: Path | None) -> None:
        self.records_folder = folder / "processes"
        self.logs_folder = folder / "logs"
        self.join = join

    def start(self, name: str, argv: Sequence[str | Path]) -> None:
        """Start `argv` in a session of its own; its output is appended to its log. Raise ClusterError when it runs
        already."""
        if self.is_running(name):
            raise ClusterError(f"{name} runs already")
        words = [str(word) for word in argv]
        for folder in (self.records_folder, self.logs_folder):
            folder.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                self._entering(words), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
            )
        ticks = started_ticks(process.pid)
        record = Record(process.pid, -1 if ticks is None else ticks, boot_id(), words)
        process.returncode = 0  # this table looks after the process, not the Popen object
        self._record_path(name).write_text(json.dumps(dataclasses.asdict(record)))

    def _entering(self, words: list[str]) -> list[str]:
        if self.join is None:
            return words
        return ["/bin/sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self.join / "cgroup.procs"), *words]

    def restart(self, name: str) -> None:
        """Start a process that has ended again, with the arguments that it had."""
        self.start(name, self._known(name).argv)

    def names(self) -> list[str]:
        return sorted(path.stem for path in self.records_folder.glob("*.json"))

    def record(self, name: str) -> Record | None:
        try:
            return Record(**json.loads(self._record_path(name).read_text()))
        except FileNotFoundError:
            return None

    def _known(self, name: str) -> Record:
        record = self.record(name)
        if record is None:
            raise ClusterError(f"no component {name!r}; there are: {', '.join(self.names())}")
        return record

    def is_running(self, name: str) -> bool:
        record = self.record(name)
        return record is not None and record.is_running()

    def stopped(self) -> list[str]:
        """Return the names of the processes that were started and do not run any more."""
        return [name for name in self.names() if not self.is_running(name)]

    def process_id(self, name: str) -> int:
        """Return the id of a running process; raise ClusterError when it does not run."""
        record = self._known(name)
        if not record.is_running():
            raise ClusterError(f"{name} does not run (its log: {self.log(name)})")
        return record.process_id

    def send(self, name: str, signal_number: signal.Signals) -> None:
        os.kill(self.process_id(name), signal_number)

    def stop(self, name: str, *, grace_seconds: float = 5) -> None:
        """End a process: SIGTERM, and SIGKILL when it still runs after the grace; nothing happens when it does not
        run."""
        if self._signal_and_wait(name, signal.SIGTERM, grace_seconds):
            return
        if not self._signal_and_wait(name, signal.SIGKILL, 10):
            raise ClusterError(f"{name} does not end on SIGKILL")

    def kill(self, name: str) -> None:
        """End a process at once, as a crash would."""
        self.stop_with(name, signal.SIGKILL)

    def stop_with(self, name: str, signal_number: signal.Signals) -> None:
        if not self._signal_and_wait(name, signal_number, 10):
            raise ClusterError(f"{name} does not end on {signal_number.name}")

    def _signal_and_wait(self, name: str, signal_number: signal.Signals, seconds: float) -> bool:
        if not self.is_running(name):
            return True
        self.send(name, signal_number)
        try:
            wait_for(
                lambda: self._has_ended(name), f"the end of {name}", timeout_seconds=seconds, interval_seconds=0.02
            )
        except ClusterError:
            return False
        return True

    def _has_ended(self, name: str) -> bool:
        record = self._known(name)
        with contextlib.suppress(ChildProcessError):  # started by another process, whose child it is
            os.waitpid(record.process_id, os.WNOHANG)
        return not record.is_running()

    def log(self, name: str) -> Path:
        return self.logs_folder / f"{name}.log"

    def log_tail(self, name: str, lines: int = LOG_LINES_OF_A_FAILURE) -> str:
        """Return the last lines of a log under a heading that names it."""
        try:
            text = self.log(name).read_text(errors="replace")
        except FileNotFoundError:
            text = ""
        return "\n".join([f"--- last lines of {name}:", *text.splitlines()[-lines:]])

    def _record_path(self, name: str) -> Path:
        return self.records_folder / f"{name}.json"
