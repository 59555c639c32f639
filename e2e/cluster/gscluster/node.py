# SPDX-License-Identifier: Apache-2.0
"""One node: a space with containerd, kubelet and kube-proxy at their usual places, which are this node's own folders
mounted over the machine's."""

import dataclasses
import json
from pathlib import Path

from gscluster import paths
from gscluster.addresses import Addresses
from gscluster.cgroups import ControlGroup
from gscluster.kubectl import Kubectl
from gscluster.pki import Authority
from gscluster.spaces import Space
from gscluster.waiting import wait_for

MOUNTED = {
    Path("/var/lib/kubelet"): "kubelet",
    Path("/run/containerd"): "run",
    Path("/var/lib/cni"): "cni-state",
    Path("/var/log/containers"): "container-logs",
}
"""Places that kubelet, containerd and CNI plugins use whatever they are told, and the folder of the node that each
node sees there."""

KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What a kubelet wants of the whole machine. It is shown files with these values instead, so the machine keeps its
own."""

DEVICE_CHECKPOINT = "device-plugins/kubelet_internal_checkpoint"
PAUSE_IMAGE = "gearshift.local/pause:1"
RUNTIME_ENDPOINT = "unix:///run/containerd/containerd.sock"


@dataclasses.dataclass(frozen=True)
class Node:
    """Node `number` of a cluster whose files are in `cluster_folder`."""

    number: int
    space: Space
    cluster_folder: Path
    addresses: Addresses
    cgroup: ControlGroup

    @property
    def name(self) -> str:
        return self.space.name

    @property
    def folder(self) -> Path:
        return self.cluster_folder / self.name

    def prepare(self, authority: Authority) -> None:
        """Write the node's configuration and mount its folders in its space."""
        for place, own in MOUNTED.items():
            (self.folder / own).mkdir(parents=True)
            self.space.run(["mount", "--bind", self.folder / own, place])
        for setting, value in KERNEL_SETTINGS.items():
            self._pretend(Path("/proc/sys") / setting, value)
        checkpoint = self.folder / "kubelet" / DEVICE_CHECKPOINT
        checkpoint.parent.mkdir()
        checkpoint.write_text("{}")  # a kubelet that finds none takes the node for a new machine and its GPUs for gone
        certificate = authority.sign(self.name, [f"IP:{self.addresses.node(self.number)}", f"DNS:{self.name}"])
        (self.folder / "cni").mkdir()
        (self.folder / "cni/10-gearshift.conflist").write_text(json.dumps(self.cni_configuration(), indent=1))
        (self.folder / "containerd.toml").write_text(self.containerd_configuration())
        kubelet = self.kubelet_configuration(authority.certificate, certificate.certificate, certificate.key)
        (self.folder / "kubelet.json").write_text(json.dumps(kubelet, indent=1))

    def _pretend(self, setting: Path, value: str) -> None:
        if setting.exists():
            own = self.folder / "sysctl" / setting.name
            own.parent.mkdir(exist_ok=True)
            own.write_text(f"{value}\n")
            self.space.run(["mount", "--bind", own, setting])

    def start_containerd(self) -> None:
        self.space.start(f"{self.name}.containerd", ["containerd", "--config", self.folder / "containerd.toml"])
        self.wait_for_containerd()

    def wait_for_containerd(self) -> None:
        def answers() -> bool:
            self.space.processes.process_id(f"{self.name}.containerd")
            return (self.folder / "run/containerd.sock").is_socket()

        wait_for(answers, f"containerd of {self.name}", timeout_seconds=30, interval_seconds=0.05)

    def start_kubelet(self) -> None:
        labels = f"topology.kubernetes.io/zone=zone-{self.number},nvidia.com/gpu.present=true"
        self.space.start(
            f"{self.name}.kubelet",
            [
                *(
                    paths.hyperkube(),
                    "kubelet",
                    "--config",
                    self.folder / "kubelet.json",
                    "--hostname-override",
                    self.name,
                ),
                *("--kubeconfig", self.cluster_folder / f"identities/{self.name}.kubeconfig"),
                *("--node-ip", str(self.addresses.node(self.number)), "--node-labels", labels),
            ],
        )

    def start_kube_proxy(self) -> None:
        self.space.start(
            f"{self.name}.kube-proxy",
            [
                *(paths.hyperkube(), "kube-proxy", "--proxy-mode=iptables", "--cluster-cidr", str(self.addresses.pods)),
                *(
                    "--kubeconfig",
                    self.cluster_folder / "identities/proxy.kubeconfig",
                    "--hostname-override",
                    self.name,
                ),
                *("--conntrack-max-per-core=0", "--conntrack-min=0", "--oom-score-adj=0"),
            ],
        )

    def advertise_gpus(self, kubectl: Kubectl, gpus: int) -> None:
        """Put `nvidia.com/gpu` into the node's capacity, as a device plugin would; the kubelet keeps it and derives
        what is allocatable."""
        patch = [{"op": "add", "path": "/status/capacity/nvidia.com~1gpu", "value": str(gpus)}]
        kubectl("patch", "node", self.name, "--subresource=status", "--type=json", "-p", json.dumps(patch))

    def cni_configuration(self) -> dict[str, object]:
        """Pods hang on the node by a link each (`ptp`), so that all their traffic is routed and passes kube-proxy's
        rules."""
        subnet = [[{"subnet": str(self.addresses.node_pods(self.number))}]]
        ipam = {"type": "host-local", "ranges": subnet, "routes": [{"dst": "0.0.0.0/0"}]}
        plugins = [
            {"type": "ptp", "ipMasq": False, "ipam": ipam},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ]
        return {"cniVersion": "0.4.0", "name": "gearshift", "plugins": plugins}

    def containerd_configuration(self) -> str:
        return f"""version = 2
root = "{self.folder}/containerd"
disabled_plugins = [{", ".join(f'"io.containerd.snapshotter.v1.{kind}"' for kind in ("btrfs", "zfs", "devmapper"))}]
[plugins."io.containerd.grpc.v1.cri"]
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE_IMAGE}"
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{paths.CNI_FOLDER}"
    conf_dir = "{self.folder}/cni"
[plugins."io.containerd.internal.v1.opt"]
  path = "{self.folder}/opt"
"""

    def kubelet_configuration(self, authority: Path, certificate: Path, key: Path) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority)},
            },
            "authorization": {"mode": "Webhook"},
            "address": str(self.addresses.node(self.number)),
            "tlsCertFile": str(certificate),
            "tlsPrivateKeyFile": str(key),
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.cgroup.node_path(self.name),
            "failCgroupV1": False,
            "failSwapOn": False,
            "containerRuntimeEndpoint": RUNTIME_ENDPOINT,
            "podLogsDir": str(self.folder / "pod-logs"),
            "resolvConf": "",
            "enforceNodeAllocatable": [],
            "evictionHard": {"nodefs.available": "1%", "memory.available": "100Mi"},
            "imageGCHighThresholdPercent": 100,
            "imageMinimumGCAge": "24h",
            "nodeLeaseDurationSeconds": 20,  # renewed every quarter of it
            "oomScoreAdj": 0,
            "volumePluginDir": str(self.folder / "volume-plugins"),
        }
