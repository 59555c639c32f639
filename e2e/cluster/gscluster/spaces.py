# SPDX-License-Identifier: Apache-2.0
"""A space is the network, mount and host name namespaces of one node, held by one sleeping process: when that has
ended, all of them go."""

from collections.abc import Sequence
from pathlib import Path

from gscluster.processes import ProcessTable
from gscluster.shell import Argument, run
from gscluster.waiting import wait_for

NAMESPACES = ("net", "mnt", "uts")


class Space:
    """The namespaces of node `name` (or of the control plane)."""

    def __init__(self, name: str, processes: ProcessTable) -> None:
        self.name = name
        self.holder = f"{name}.holder"
        self.processes = processes

    def create(self) -> None:
        """Start the holder. Mounts of this machine come into the space, those made in it do not come out."""
        isolate = ["unshare", "--net", "--mount", "--uts", "--propagation", "slave", "--"]
        self.processes.start(self.holder, [*isolate, "sleep", "infinity"])
        wait_for(self._is_apart, f"the namespaces of {self.name}", timeout_seconds=10, interval_seconds=0.01)
        self.run(["hostname", self.name])
        self.run(["ip", "link", "set", "lo", "up"])

    def _is_apart(self) -> bool:
        """Say whether the holder has left this machine's namespaces and sleeps (the last thing that it starts)."""
        process = Path(f"/proc/{self.process_id}")
        own = [(Path("/proc/self/ns") / kind).readlink() for kind in NAMESPACES]
        return (process / "comm").read_text() == "sleep\n" and own != [
            (process / "ns" / kind).readlink() for kind in NAMESPACES
        ]

    @property
    def process_id(self) -> int:
        return self.processes.process_id(self.holder)

    def enter(self, argv: Sequence[Argument]) -> list[str]:
        """Return the arguments that run `argv` inside the space."""
        return [
            "nsenter",
            f"--target={self.process_id}",
            "--net",
            "--mount",
            "--uts",
            "--",
            *[str(word) for word in argv],
        ]

    def run(self, argv: Sequence[Argument], *, stdin: str | None = None, timeout_seconds: float = 60) -> str:
        """Run `argv` inside the space to its end and return its output; raise ClusterError when it fails."""
        return run(self.enter(argv), stdin=stdin, timeout_seconds=timeout_seconds)

    def start(self, component: str, argv: Sequence[Argument]) -> None:
        """Start a component inside the space under its name in the process table."""
        self.processes.start(component, self.enter(argv))
