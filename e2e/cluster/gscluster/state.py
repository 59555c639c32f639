# SPDX-License-Identifier: Apache-2.0
"""What is written down about a cluster, and the lock under which clusters of one machine start and end."""

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from gscluster import paths
from gscluster.processes import boot_id
from gscluster.settings import ClusterSettings


@dataclasses.dataclass(frozen=True)
class State:
    """Written at the beginning of a start, and once more with `started` when it has succeeded."""

    settings: ClusterSettings
    index: int
    boot: str
    started: bool
    made_folders: list[str]
    """Folders of this machine that did not exist before: mount points for the nodes. The last cluster removes them."""

    def save(self, folder: Path) -> None:
        temporary = folder / "cluster.json.new"
        temporary.write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")
        temporary.rename(folder / "cluster.json")

    @classmethod
    def load(cls, folder: Path) -> "State | None":
        """Return the state in `folder`, or None when there is none (no cluster, or one that came no further than its
        folder)."""
        try:
            known = json.loads((folder / "cluster.json").read_text())
        except FileNotFoundError:
            return None
        return cls(**known | {"settings": ClusterSettings(**known["settings"])})

    @property
    def is_of_this_boot(self) -> bool:
        return self.boot == boot_id()


def folder_of(name: str) -> Path:
    return paths.state_root() / name


def names() -> list[str]:
    """Return the names of the clusters that have left a folder."""
    return sorted(path.name for path in paths.state_root().glob("*") if path.is_dir())


def make_folders(wanted: list[Path]) -> list[str]:
    """Make folders and return those (parents too) that did not exist, innermost first."""
    made: list[str] = []
    for folder in wanted:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        made.extend(str(path) for path in missing)
    return made


def remove_folders(made: list[str]) -> None:
    """Remove folders that `make_folders` made and that are still empty."""
    for folder in sorted(made, key=len, reverse=True):
        with contextlib.suppress(OSError):  # not empty: somebody else uses it now
            Path(folder).rmdir()


@contextlib.contextmanager
def lock() -> Iterator[None]:
    """Hold the lock of all clusters of this machine; it is a lock on the folder that holds theirs, which goes with the
    last of them."""
    root = paths.state_root()
    descriptor = _locked_descriptor(root)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # clusters are left
            root.rmdir()
        os.close(descriptor)


def _locked_descriptor(root: Path) -> int:
    while True:
        root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if root.exists() and os.path.samestat(os.fstat(descriptor), root.stat()):
            return descriptor
        os.close(descriptor)  # the holder before us removed the folder
