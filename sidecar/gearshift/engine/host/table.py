# SPDX-License-Identifier: Apache-2.0
"""Which engine processes exist and in which state: the pure part of the host."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from gearshift.api.host import ProcessSpec, ProcessStatus

LOG_TAIL_LINES: Final = 50


class RefusedError(Exception):
    """A request that contradicts the table; its text goes to the sidecar."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass
class Entry:
    """One engine process, alive or dead."""

    name: str
    spec: ProcessSpec
    pid: int
    started_at: float
    exit_code: int | None = None
    log_tail: deque[str] = field(default_factory=lambda: deque(maxlen=LOG_TAIL_LINES))

    @property
    def running(self) -> bool:
        """True until the exit was recorded."""
        return self.exit_code is None

    def status(self) -> ProcessStatus:
        """The wire form."""
        return ProcessStatus(
            name=self.name,
            pid=self.pid,
            state="Running" if self.running else "Exited",
            exit_code=self.exit_code,
            started_at=self.started_at,
            spec=self.spec,
            log_tail=list(self.log_tail),
        )


class Table:
    """Engine processes by name: at most one alive for each; the last dead one is kept until its name is used again."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.terminating = False

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def get(self, name: str) -> Entry:
        """Find an entry.

        Raises:
            KeyError: no process of that name was ever started.
        """
        return self._entries[name]

    def running(self) -> list[Entry]:
        """Entries whose process lives."""
        return [entry for entry in self if entry.running]

    def admit(self, name: str, spec: ProcessSpec) -> Entry | None:
        """Say what a request to run ``spec`` as ``name`` means.

        Returns:
            The running entry when it already is just that; None when a process must be started.

        Raises:
            RefusedError: the name runs with another spec, or the host is going down.
        """
        entry = self._entries.get(name)
        alive = entry is not None and entry.running
        if alive and entry is not None and entry.spec == spec:
            return entry
        if alive and entry is not None:
            raise RefusedError(
                "SpecDiffers", f"process {name!r} runs (pid {entry.pid}) with another spec: stop it first"
            )
        if self.terminating:
            raise RefusedError("Terminating", f"process {name!r} was not started: the host is terminating")
        return None

    def started(self, name: str, spec: ProcessSpec, pid: int, now: float) -> Entry:
        """Record a process that was just spawned."""
        entry = Entry(name=name, spec=spec, pid=pid, started_at=now)
        self._entries[name] = entry
        return entry

    def exited(self, pid: int, exit_code: int) -> Entry | None:
        """Record an exit; None when no living entry has that pid."""
        for entry in self.running():
            if entry.pid == pid:
                entry.exit_code = exit_code
                return entry
        return None
