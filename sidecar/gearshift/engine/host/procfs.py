# SPDX-License-Identifier: Apache-2.0
"""The process tree as /proc tells it: engines fork workers, and whoever outlives its parent still holds memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    session: int
    zombie: bool


def parse_stat(text: str) -> Process:
    """Read one ``/proc/PID/stat``; the command in it may hold spaces and parentheses."""
    pid, rest = text.split(" ", 1)
    state, parent, _group, session = rest.rsplit(")", 1)[1].split()[:4]
    return Process(pid=int(pid), parent=int(parent), session=int(session), zombie=state in {"Z", "X"})


def processes() -> list[Process]:
    """All processes that can be seen now."""
    found = []
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            found.append(parse_stat((folder / "stat").read_text(errors="replace")))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we read
    return found


def of_session(session: int, table: list[Process]) -> list[int]:
    """Pids of the living processes of a session."""
    return [process.pid for process in table if process.session == session and not process.zombie]


def below(root: int, table: list[Process]) -> list[int]:
    """Pids of the living descendants of ``root``."""
    children: dict[int, list[Process]] = {}
    for process in table:
        children.setdefault(process.parent, []).append(process)
    found, todo = [], [root]
    while todo:
        for child in children.get(todo.pop(), []):
            todo.append(child.pid)
            if not child.zombie:
                found.append(child.pid)
    return found
