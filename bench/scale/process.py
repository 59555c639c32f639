# SPDX-License-Identifier: Apache-2.0
"""The operator's process, and what the kernel says that it costs."""

import contextlib
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gscluster.fast import DIE_WITH_US, FastCluster
from gscluster.identities import write_kubeconfig

ROOT: Final = Path(__file__).resolve().parents[2]
OWN_NAMESPACE: Final = "gearshift-system"
_PRODUCT: Final = ("core", "operator")


def install(cluster: FastCluster) -> None:
    """CRD, and the operator's namespace, account and rights as ``config/`` gives them."""
    cluster.kubectl.apply_crds(ROOT / "crds")
    cluster.kubectl("apply", "-f", str(ROOT / "config/namespace.yaml"))
    cluster.kubectl("apply", "-f", str(ROOT / "config/rbac"))


def environment() -> dict[str, str]:
    """Of a Python process that imports what this one does."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(sys.path[1:])}


def cpu_seconds(process_id: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Operator:
    """One running operator."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def peak_megabytes(self) -> float:
        """The most memory that it has held so far: the high-water mark of its resident set, in 10^6 bytes."""
        return self._kibibytes("VmHWM") * 1024 / 1e6

    @property
    def megabytes(self) -> float:
        """Its resident set now, in 10^6 bytes."""
        return self._kibibytes("VmRSS") * 1024 / 1e6

    @property
    def cpu_seconds(self) -> float:
        """Processor time that it has used."""
        return cpu_seconds(self.process.pid)

    def decided(self) -> int:
        """Services that it has decided on since it started: those that its metrics have a number of pods of."""
        port = self.log.read_text().split("metrics on port ", 1)[1].split(",", 1)[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return sum(line.startswith("gearshift_operator_pods_desired{") for line in lines)

    def defects(self) -> list[str]:
        """Log lines of what must not happen."""
        return [line for line in self.log.read_text().splitlines() if "defect" in line or " ERROR " in line]

    def _kibibytes(self, field: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(f"{field}:")).split()[1])


@contextlib.contextmanager
def operator(cluster: FastCluster, image: str, name: str) -> Iterator[Operator]:
    """Start an operator with its default settings; ended on exit."""
    token = cluster.kubectl("create", "token", "gearshift-operator", "-n", OWN_NAMESPACE).strip()
    kubeconfig, log = cluster.folder / f"{name}.kubeconfig", cluster.folder / f"{name}.log"
    write_kubeconfig(kubeconfig, cluster.endpoints.server, cluster.folder / "pki/ca.crt", token)
    token_file = cluster.folder / "control-token"
    token_file.write_text("a control token\n")
    flags = ["--image", image, "--kubeconfig", str(kubeconfig), "--token-file", str(token_file)]
    flags += ["--metrics-host", "127.0.0.1", "--metrics-port", "0", "--log-format", "text"]
    argv = [*DIE_WITH_US, sys.executable, "-m", "gearshift.operator", *flags]
    roots = ":".join(str(ROOT / part) for part in _PRODUCT)
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, env={"PATH": os.environ["PATH"], "PYTHONPATH": roots}, stdout=output, stderr=output
        )
    try:
        yield Operator(process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
