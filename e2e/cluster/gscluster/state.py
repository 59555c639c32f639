# SPDX-License-Identifier: Apache-2.0
"""What is written down about a cluster, and the lock under which clusters of one machine start and end."""

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from gscluster import paths
from gscluster.errors import ClusterError
from gscluster.processes import boot_id
from gscluster.settings import ClusterSettings


@dataclasses.dataclass(frozen=True)
class State:
    """Written at the beginning of a start, and once more with `started` when it has succeeded."""

    settings: ClusterSettings
    index: int
    boot: str
    started: bool

    def save(self, folder: Path) -> None:
        temporary = folder / "cluster.json.new"
        temporary.write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")
        temporary.rename(folder / "cluster.json")

    @classmethod
    def load(cls, folder: Path) -> "State | None":
        """Return the state in `folder`, or None when there is none (no cluster, or one that came no further than its
        folder); raise ClusterError when it is not of this version."""
        try:
            known = json.loads((folder / "cluster.json").read_text())
            return cls(**known | {"settings": ClusterSettings(**known["settings"])})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise ClusterError(
                f"{folder / 'cluster.json'} is damaged or of another version; end the cluster"
            ) from error

    @property
    def is_of_this_boot(self) -> bool:
        return self.boot == boot_id()


def folder_of(name: str) -> Path:
    return paths.state_root() / name


def names() -> list[str]:
    """Return the names of the clusters that have left a folder."""
    return sorted(path.name for path in paths.state_root().glob("*") if path.is_dir())


def make_folders(wanted: Iterable[Path]) -> None:
    """Make folders outside of the clusters' own, and write down those that did not exist (with their parents)."""
    for folder in wanted:
        missing = [str(path) for path in (folder, *folder.parents) if not path.exists()]
        if missing:
            _made_file().write_text(json.dumps([*_made_folders(), *missing]))
            folder.mkdir(parents=True)


def remove_folders() -> None:
    """Remove the folders that `make_folders` made, if no cluster is left that may need them."""
    if names():
        return
    for folder in sorted(_made_folders(), key=len, reverse=True):
        with contextlib.suppress(OSError):  # not empty: somebody else uses it now
            Path(folder).rmdir()
    _made_file().unlink(missing_ok=True)


def _made_file() -> Path:
    return paths.state_root() / "made-folders.json"


def _made_folders() -> list[str]:
    try:
        return [str(path) for path in json.loads(_made_file().read_text())]
    except FileNotFoundError:
        return []


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
