# SPDX-License-Identifier: Apache-2.0
"""The control group that holds every process of a cluster, so that its end needs no list of processes that could be
wrong.

`system` holds what this package starts and what that starts (containerd's shims too); each node has a group beside it
for its pods. Control groups of version 1 (a tree for each controller) and of version 2 (one tree) both serve.
"""

import os
import signal
from pathlib import Path

from gscluster.errors import ClusterError
from gscluster.waiting import wait_for

ROOT = Path("/sys/fs/cgroup")
V2_CONTROLLERS = ("cpuset", "cpu", "io", "memory", "pids")


class ControlGroup:
    """The group `gs-NAME` in every tree of this machine."""

    def __init__(self, name: str, root: Path = ROOT) -> None:
        self.root = root
        self.top = f"gs-{name}"

    @property
    def is_v2(self) -> bool:
        return (self.root / "cgroup.controllers").exists()

    def trees(self) -> list[Path]:
        """Return the mount points of the trees; those of version 1 without links such as `cpu` to `cpu,cpuacct`."""
        if self.is_v2:
            return [self.root]
        found = [path for path in sorted(self.root.iterdir()) if path.is_dir() and not path.is_symlink()]
        if not found:
            raise ClusterError(f"no control groups under {self.root}: a cluster needs them")
        return found

    @property
    def system(self) -> Path:
        """The folder that a process joins to belong to the cluster."""
        trees = {tree.name: tree for tree in self.trees()}
        return trees.get("pids", self.trees()[0]) / self.top / "system"

    def node_path(self, node_name: str) -> str:
        """The path of a node's group below each tree, as the kubelet's `cgroupRoot` wants it."""
        return f"/{self.top}/{node_name}"

    def create(self, node_names: list[str]) -> None:
        if self.is_v2:
            self._delegate(self.root)
            (self.root / self.top).mkdir(exist_ok=True)
            self._delegate(self.root / self.top)
        self.system.mkdir(parents=True, exist_ok=True)
        for tree in self.trees():
            if tree.name != "unified":
                for name in node_names:
                    (tree / self.top / name).mkdir(parents=True, exist_ok=True)

    @staticmethod
    def _delegate(folder: Path) -> None:
        offered = (folder / "cgroup.controllers").read_text().split()
        wanted = [f"+{controller}" for controller in V2_CONTROLLERS if controller in offered]
        (folder / "cgroup.subtree_control").write_text(" ".join(wanted))

    def folders(self) -> list[Path]:
        """Return every folder of the group in every tree, deepest first."""
        found = []
        for tree in self.trees() if self.root.exists() else []:
            for parent, _, _ in os.walk(tree / self.top, topdown=False):
                found.append(Path(parent))
        return found

    def process_ids(self) -> set[int]:
        found: set[int] = set()
        for folder in self.folders():
            try:
                found.update(int(line) for line in (folder / "cgroup.procs").read_text().split())
            except FileNotFoundError:
                continue  # the group ended while it was looked at
        return found

    def kill(self, timeout_seconds: float = 30) -> None:
        """Kill every process of the group; raise ClusterError when one does not end."""
        wait_for(
            self._kill_once, f"the end of the processes in control group {self.top}", timeout_seconds=timeout_seconds
        )

    def _kill_once(self) -> bool:
        """Signal what is left; say whether nothing was."""
        process_ids = self.process_ids()
        for process_id in process_ids:
            try:
                os.kill(process_id, signal.SIGKILL)
                os.waitpid(process_id, os.WNOHANG)
            except (ProcessLookupError, ChildProcessError):
                continue  # it has ended, or is no child of this process
        return not process_ids

    def remove(self) -> None:
        """Remove the (empty) group; the kernel may need a moment to see that it is empty."""
        wait_for(self._remove_once, f"the removal of control group {self.top}", timeout_seconds=90)

    def _remove_once(self) -> bool:
        for folder in self.folders():
            try:
                folder.rmdir()
            except OSError:
                return False
        return True
