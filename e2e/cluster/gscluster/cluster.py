# SPDX-License-Identifier: Apache-2.0
"""A cluster of nodes: its start, its end, and what can be asked of it while it runs."""

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gscluster import control_plane, images, network, state
from gscluster.addresses import Addresses
from gscluster.cgroups import ControlGroup
from gscluster.errors import ClusterError
from gscluster.identities import write_identities
from gscluster.kubectl import Kubectl
from gscluster.node import PAUSE_IMAGE, Node
from gscluster.pki import Authority
from gscluster.processes import ProcessTable
from gscluster.settings import ClusterSettings
from gscluster.shell import Argument, succeeds
from gscluster.spaces import Space
from gscluster.waiting import wait_for

NODES_READY_SECONDS = 120


class Cluster:
    """A cluster that runs or is being started; get one from `lifecycle.up` or `lifecycle.find`."""

    def __init__(self, settings: ClusterSettings, addresses: Addresses) -> None:
        self.settings = settings
        self.addresses = addresses
        self.folder = state.folder_of(settings.name)
        self.cgroup = ControlGroup(settings.name)
        self.processes = ProcessTable(self.folder, self.cgroup.system)
        self.control_plane = Space("control-plane", self.processes)
        self.kubeconfig = self.folder / "identities/admin.kubeconfig"
        self.kubectl = Kubectl(self.kubeconfig, self.folder / "kubectl-cache")
        self.audit_log = self.folder / "logs/audit.log"
        self.nodes = [
            Node(number, Space(name, self.processes), self.folder, addresses, self.cgroup)
            for number, name in enumerate(settings.node_names(), start=1)
        ]

    def node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise ClusterError(f"no node {name!r}; there are: {', '.join(self.settings.node_names())}")

    def run_in_node(self, name: str, argv: Sequence[Argument], *, timeout_seconds: float = 60) -> str:
        """Run a program of this machine in the namespaces of a node (so it sees Service addresses); return its
        output."""
        return self.node(name).space.run(argv, timeout_seconds=timeout_seconds)

    def route_services_via(self, name: str) -> None:
        """Lead this machine's traffic to Service addresses over another node than the first, as when that one is cut
        off."""
        network.route_services_via(self.addresses, self.node(name).number)

    def load_images(self, archives: Sequence[Path]) -> None:
        """Import image archives on every node, over what they have."""
        images.import_everywhere([node.space for node in self.nodes], archives)
        loaded = self._loaded_archives() | {_identity(archive) for archive in archives}
        (self.folder / "images.json").write_text(json.dumps(sorted(loaded)))

    def new_archives(self, archives: Sequence[Path]) -> list[Path]:
        """Return those of `archives` that the nodes do not have, or not with this content."""
        loaded = self._loaded_archives()
        return [archive for archive in archives if _identity(archive) not in loaded]

    def _loaded_archives(self) -> set[str]:
        try:
            return set(json.loads((self.folder / "images.json").read_text()))
        except FileNotFoundError:
            return set()

    def start(self, archives: Sequence[Path]) -> None:
        """Start everything, from an empty folder to nodes that are Ready and have the images."""
        self.cgroup.create(self.settings.node_names())
        endpoints = control_plane.Endpoints(self.addresses.control_plane, self.addresses.services)
        authority = control_plane.prepare(self.folder, endpoints)
        names = self.settings.node_names()
        write_identities(self.folder / "identities", endpoints.server, authority.certificate, names)
        self.control_plane.create()
        network.connect_control_plane(self.control_plane, self.addresses)
        self.control_plane.start("etcd", control_plane.etcd(self.folder, endpoints))
        api_server = control_plane.api_server_with_nodes(self.folder, endpoints, authority)
        self.control_plane.start("kube-apiserver", api_server)
        self._create_nodes(authority)
        with ThreadPoolExecutor(max_workers=1) as pool:
            imports = pool.submit(self.load_images, archives)
            control_plane.wait_until_ready(self.kubectl, self.processes)
            self._start_controllers(endpoints, authority)
            self._start_kubelets()
            imports.result()
        for node in self.nodes:
            images.require(node.space, PAUSE_IMAGE)
        self.wait_until_usable()

    def _create_nodes(self, authority: Authority) -> None:
        for node in self.nodes:
            node.space.create()
            network.connect_node(node.space, self.control_plane, self.addresses, node.number, len(self.nodes))
            node.prepare(authority)
        network.route_services_via(self.addresses, self.nodes[0].number)
        for node in self.nodes:
            node.start_containerd()

    def _start_controllers(self, endpoints: control_plane.Endpoints, authority: Authority) -> None:
        grace = self.settings.node_monitor_grace_seconds
        manager = control_plane.controller_manager(self.folder, endpoints, authority, grace)
        self.control_plane.start("kube-controller-manager", manager)
        self.control_plane.start("kube-scheduler", control_plane.scheduler(self.folder, endpoints, authority))

    def _start_kubelets(self) -> None:
        for node in self.nodes:
            node.start_kubelet()
            node.start_kube_proxy()
        for node in self.nodes:
            wait_for(lambda: self._is_registered(node), f"node {node.name} to register", timeout_seconds=60)  # noqa: B023
            node.advertise_gpus(self.kubectl, self.settings.gpus_per_node)

    def _is_registered(self, node: Node) -> bool:
        self._require_running()
        return self.kubectl.succeeds("get", "node", node.name)

    def wait_until_usable(self, timeout_seconds: float = NODES_READY_SECONDS) -> None:
        """Return when every node is Ready with its GPUs and a pod may be made; raise ClusterError that says what is
        missing."""

        def is_usable() -> bool:
            self._require_running()
            return not self.not_ready() and self.kubectl.succeeds("get", "serviceaccount", "default")

        wait_for(is_usable, "Ready nodes and the default service account", timeout_seconds=timeout_seconds)

    def _require_running(self) -> None:
        for name in self.processes.names():
            self.processes.process_id(name)

    def not_ready(self) -> list[str]:
        """Return what the API server says against its nodes: 'node-2: not Ready', one entry a complaint."""
        known = {node["metadata"]["name"]: node["status"] for node in self.kubectl.json("get", "nodes")["items"]}
        complaints = []
        for name in self.settings.node_names():
            conditions = {one["type"]: one for one in known.get(name, {}).get("conditions", [])}
            ready = conditions.get("Ready", {"status": "False", "message": "not registered"})
            if ready["status"] != "True":
                complaints.append(f"{name}: not Ready: {ready.get('message', '')}")
            elif int(known[name]["allocatable"].get("nvidia.com/gpu", 0)) != self.settings.gpus_per_node:
                complaints.append(f"{name}: allocatable nvidia.com/gpu is not {self.settings.gpus_per_node}")
        return complaints

    def problems(self) -> list[str]:
        """Return why this cluster is not usable now, each with the last log lines of the component at fault; empty
        when it is."""
        known = state.State.load(self.folder)
        if known is None or not known.started:
            return ["its start did not come to its end"]
        if not known.is_of_this_boot:
            return ["the machine has been restarted since"]
        ended = [f"{name} has ended\n{self.processes.log_tail(name)}" for name in self.processes.stopped()]
        if ended:
            return ended
        if not self.kubectl.succeeds("get", "--raw", "/readyz", "--request-timeout=5s"):
            return [f"the API server does not answer\n{self.processes.log_tail('kube-apiserver')}"]
        return self.not_ready()

    def explain_failure(self) -> str:
        """Return the last log lines of the components that have ended, or of all when none has."""
        suspects = self.processes.stopped() or [name for name in self.processes.names() if not name.endswith(".holder")]
        return "\n".join(self.processes.log_tail(name) for name in suspects)

    def end(self) -> None:
        """End the cluster at once, however far it came, and remove all that it made."""
        self.cgroup.kill()
        for name in self.processes.names():
            self.processes.kill(name)
        _remove_link(self.addresses.link)
        self.cgroup.remove()
        shutil.rmtree(self.folder)


def _remove_link(link: str) -> None:
    """Remove a link whose other end is in a network namespace without processes; the kernel may do it meanwhile."""
    if not succeeds(["ip", "link", "delete", link]) and succeeds(["ip", "link", "show", link]):
        raise ClusterError(f"link {link} can't be removed")


def _identity(archive: Path) -> str:
    """Return what changes when an archive is built again."""
    target = archive.resolve()
    return f"{target} {target.stat().st_mtime_ns}"
