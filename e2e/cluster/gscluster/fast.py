# SPDX-License-Identifier: Apache-2.0
"""An API server without nodes for functional tests: etcd and API server on loopback in about two seconds, without
root."""

import contextlib
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from gscluster import control_plane
from gscluster.errors import ClusterError
from gscluster.identities import write_identities
from gscluster.kubectl import Kubectl
from gscluster.processes import ProcessTable
from gscluster.waiting import wait_for

DIE_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
"""Every process of it ends when the process that started it ends, however that happens."""

WITHOUT_CONTROLLERS = "ServiceAccount"
"""An admission plugin that waits for what only the controller manager makes."""

ATTEMPTS = 3


class FastCluster:
    """Everything of it lives in `folder` and in the processes of `processes`."""

    def __init__(
        self,
        folder: Path,
        endpoints: control_plane.Endpoints,
        *,
        controllers: bool,
        node_grace_seconds: int,
        state: Path | None = None,
    ) -> None:
        self.folder = folder
        self.endpoints = endpoints
        self.controllers = controllers
        self.node_grace_seconds = node_grace_seconds
        self.state = state
        self.processes = ProcessTable(folder, None)
        self.kubeconfig = folder / "identities/admin.kubeconfig"
        self.kubectl = Kubectl(self.kubeconfig, self.folder / "kubectl-cache")
        self.audit_log = folder / "logs/audit.log"

    def save_state(self, to: Path) -> None:
        """Copy what etcd holds, for the `state` of another cluster; meanwhile etcd stands still."""
        self.processes.send("etcd", signal.SIGSTOP)
        try:
            shutil.copytree(self.folder / "etcd", to)
        finally:
            self.processes.send("etcd", signal.SIGCONT)

    def start(self) -> None:
        if self.state is not None:
            shutil.copytree(self.state, self.folder / "etcd")
        authority = control_plane.prepare(self.folder, self.endpoints)
        write_identities(self.folder / "identities", self.endpoints.server, authority.certificate, [])
        self._start("etcd", control_plane.etcd(self.folder, self.endpoints))
        api_server = control_plane.api_server(self.folder, self.endpoints, authority)
        options: list[str | Path] = ["--endpoint-reconciler-type=none", "--advertise-address=127.0.0.1"]
        if not self.controllers:
            options.append(f"--disable-admission-plugins={WITHOUT_CONTROLLERS}")
        self._start("kube-apiserver", [*api_server, *options])
        control_plane.wait_until_ready(self.kubectl, self.processes)
        if self.controllers:
            grace = self.node_grace_seconds
            manager = control_plane.controller_manager(self.folder, self.endpoints, authority, grace)
            self._start("kube-controller-manager", manager)
            self._start("kube-scheduler", control_plane.scheduler(self.folder, self.endpoints, authority))
        self._wait_for_default_namespace()

    def _start(self, name: str, argv: list[str | Path]) -> None:
        self.processes.start(name, [*DIE_WITH_US, *argv])

    def _wait_for_default_namespace(self) -> None:
        wanted = ("get", "serviceaccount", "default") if self.controllers else ("get", "namespace", "default")
        wait_for(lambda: self.kubectl.succeeds(*wanted), f"kubectl {' '.join(wanted)}", timeout_seconds=120)

    def end(self) -> None:
        for name in self.processes.names():
            self.processes.kill(name)
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def fast_cluster(
    *, controllers: bool = False, node_grace_seconds: int = 40, state: Path | None = None
) -> Iterator[FastCluster]:
    """Yield a running API server, with controller manager and scheduler when `controllers`; end it and leave nothing.

    It begins empty, or with the objects that another one's `save_state` copied to the folder `state`.

    The thread that enters must live as long as the cluster is wanted. Raise ClusterError with the last log lines when
    it does not start.
    """
    cluster = _started(controllers=controllers, node_grace_seconds=node_grace_seconds, state=state)
    try:
        yield cluster
    finally:
        cluster.end()


def _started(*, controllers: bool, node_grace_seconds: int, state: Path | None) -> FastCluster:
    """Start one; another process may take a port between its choice and its use, so try again on other ports."""
    for attempt in range(1, ATTEMPTS + 1):
        folder = Path(tempfile.mkdtemp(prefix="gscluster-"))
        cluster = FastCluster(
            folder, free_endpoints(), controllers=controllers, node_grace_seconds=node_grace_seconds, state=state
        )
        try:
            cluster.start()
        except BaseException as error:
            said = "\n".join(cluster.processes.log_tail(name) for name in cluster.processes.names())
            cluster.end()
            if not isinstance(error, ClusterError):
                raise
            if attempt == ATTEMPTS or "address already in use" not in said:
                raise ClusterError(f"the API server did not start: {error}\n{said}") from error
        else:
            return cluster
    raise AssertionError("unreachable: the last attempt returns or raises")


def free_endpoints() -> control_plane.Endpoints:
    """Return endpoints on loopback ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(5)]
        ports = [opened.getsockname()[1] for opened in sockets]
    return control_plane.Endpoints(IPv4Address("127.0.0.1"), IPv4Network("10.96.0.0/16"), *ports)
