# SPDX-License-Identifier: Apache-2.0
"""The arguments of etcd, API server, controller manager and scheduler, and the order in which they start."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from gscluster import paths
from gscluster.kubectl import Kubectl
from gscluster.pki import Authority
from gscluster.processes import ProcessTable
from gscluster.waiting import wait_for

START_SECONDS = 180
Start = Callable[[str, Sequence[str | Path]], None]

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "None"},
    ],
}


@dataclasses.dataclass(frozen=True)
class Endpoints:
    """Where a control plane listens, and what it hands out."""

    api_address: IPv4Address
    services: IPv4Network
    api_port: int = 6443
    etcd_port: int = 2379
    etcd_peer_port: int = 2380
    controller_manager_port: int = 10257
    scheduler_port: int = 10259

    @property
    def server(self) -> str:
        return f"https://{self.api_address}:{self.api_port}"

    @property
    def alternative_names(self) -> list[str]:
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        return [f"DNS:{name}" for name in names] + [
            f"IP:{ip}" for ip in ("127.0.0.1", self.services[1], self.api_address)
        ]


def etcd(folder: Path, endpoints: Endpoints) -> list[str | Path]:
    client, peer = (f"http://127.0.0.1:{port}" for port in (endpoints.etcd_port, endpoints.etcd_peer_port))
    return [
        *(paths.hyperkube(), "etcd", "--data-dir", folder / "etcd", "--log-level", "warn", "--unsafe-no-fsync"),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"),
    ]


def api_server(folder: Path, endpoints: Endpoints, authority: Authority) -> list[str | Path]:
    """The arguments of the API server; its certificates must have been signed before (see `prepare`)."""
    pki = authority.folder
    return [
        *(paths.hyperkube(), "kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{endpoints.etcd_port}"),
        *("--bind-address", str(endpoints.api_address), "--secure-port", str(endpoints.api_port)),
        *("--service-cluster-ip-range", str(endpoints.services), "--authorization-mode", "Node,RBAC"),
        *("--tls-cert-file", pki / "kube-apiserver.crt", "--tls-private-key-file", pki / "kube-apiserver.key"),
        *(
            "--cert-dir",
            pki,
            "--client-ca-file",
            authority.certificate,
            "--token-auth-file",
            folder / "identities/tokens.csv",
        ),
        *("--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", pki / "sa.pub"),
        *("--service-account-signing-key-file", pki / "sa.key", "--allow-privileged"),
        *("--audit-policy-file", folder / "audit-policy.json", "--audit-log-path", folder / "logs/audit.log"),
        "--audit-log-maxsize=512",
        "--shutdown-delay-duration=0s",
    ]


def api_server_with_nodes(folder: Path, endpoints: Endpoints, authority: Authority) -> list[str | Path]:
    """The arguments of an API server that talks to kubelets and to webhooks in pods."""
    pki = authority.folder
    return [
        *api_server(folder, endpoints, authority),
        *("--enable-admission-plugins", "NodeRestriction", "--kubelet-preferred-address-types", "InternalIP"),
        *(
            "--kubelet-certificate-authority",
            authority.certificate,
            "--kubelet-client-certificate",
            pki / "api-to-kubelet.crt",
        ),
        *("--kubelet-client-key", pki / "api-to-kubelet.key", "--enable-aggregator-routing"),
        *("--proxy-client-cert-file", pki / "front-proxy.crt", "--proxy-client-key-file", pki / "front-proxy.key"),
        *("--requestheader-client-ca-file", authority.certificate, "--requestheader-allowed-names", "front-proxy"),
        *("--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group"),
        *("--requestheader-extra-headers-prefix", "X-Remote-Extra-"),
    ]


def controller_manager(
    folder: Path, endpoints: Endpoints, authority: Authority, node_grace_seconds: int
) -> list[str | Path]:
    return [
        *(paths.hyperkube(), "kube-controller-manager", *_client(folder, "controllers")),
        *("--secure-port", str(endpoints.controller_manager_port), "--cert-dir", authority.folder),
        *("--service-account-private-key-file", authority.service_account_key, "--root-ca-file", authority.certificate),
        *(
            "--use-service-account-credentials",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            "--node-monitor-period=2s",
        ),
        *(f"--node-monitor-grace-period={node_grace_seconds}s", "--flex-volume-plugin-dir", folder / "volume-plugins"),
    ]


def scheduler(folder: Path, endpoints: Endpoints, authority: Authority) -> list[str | Path]:
    return [
        *(paths.hyperkube(), "kube-scheduler", *_client(folder, "scheduler"), "--cert-dir", authority.folder),
        *("--secure-port", str(endpoints.scheduler_port), "--kube-api-qps=500", "--kube-api-burst=1000"),
    ]


def _client(folder: Path, user: str) -> list[str | Path]:
    """The arguments by which a component of the control plane reaches the API server; it serves on loopback only."""
    kubeconfig = folder / f"identities/{user}.kubeconfig"
    files = (
        "--kubeconfig",
        kubeconfig,
        "--authentication-kubeconfig",
        kubeconfig,
        "--authorization-kubeconfig",
        kubeconfig,
    )
    return [*files, "--authentication-tolerate-lookup-failure", "--leader-elect=false", "--bind-address=127.0.0.1"]


def prepare(folder: Path, endpoints: Endpoints) -> Authority:
    """Write certificates and the audit policy into `folder`."""
    authority = Authority(folder / "pki")
    authority.create()
    authority.sign("kube-apiserver", endpoints.alternative_names)
    authority.sign("api-to-kubelet", ["DNS:api-to-kubelet"], organization="system:masters")
    authority.sign("front-proxy", ["DNS:front-proxy"])
    (folder / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))
    return authority


def wait_until_ready(kubectl: Kubectl, processes: ProcessTable, *, timeout_seconds: float = START_SECONDS) -> None:
    """Return when the API server is ready; raise ClusterError at once when it or etcd has ended, with the last lines
    of its log."""

    def is_ready() -> bool:
        for name in ("etcd", "kube-apiserver"):
            processes.process_id(name)
        return kubectl.succeeds("get", "--raw", "/readyz", "--request-timeout=5s")

    wait_for(is_ready, "the API server to be ready", timeout_seconds=timeout_seconds, interval_seconds=0.05)
