# SPDX-License-Identifier: Apache-2.0
"""Shared memory that engines leave behind: it would fill the pod's memory limit engine by engine.

vLLM's CPU workers never remove their segments (``vllm_dist_*``), and one that was killed leaves its message queues too,
which Python names ``psm_*``.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from gearshift.engine.host.procfs import PROC

SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - POSIX shared memory, not a temporary file of ours
PATTERNS: Final = ("vllm_dist_*", "psm_*")


def mapped_files() -> set[str]:
    """Paths of all files that a visible process has mapped."""
    paths: set[str] = set()
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it ended, or it is another user's
                for line in (folder / "maps").read_text(errors="replace").splitlines():
                    paths.update(line.split(None, 5)[5:])
    return paths


def remove_leftovers(since: float, folder: Path = SHARED_MEMORY, user: int | None = None) -> list[str]:
    """Remove the segments made at or after ``since`` (epoch seconds) that no process has mapped.

    ``user`` is their owner, by default the user of this process.

    Returns:
        Names of the removed files.
    """
    candidates = [path for pattern in PATTERNS for path in folder.glob(pattern)]
    if not candidates:
        return []
    in_use = mapped_files()
    removed = []
    for path in candidates:
        with suppress(FileNotFoundError):
            facts = path.stat()
            if (
                facts.st_uid == (os.geteuid() if user is None else user)
                and facts.st_mtime >= since
                and str(path) not in in_use
            ):
                path.unlink()
                removed.append(path.name)
    return sorted(removed)
