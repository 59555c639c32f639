# SPDX-License-Identifier: Apache-2.0
"""From pods of a real API server, read with the shipped rights, to scraped targets."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gscluster.fast import FastCluster
from gscluster.waiting import wait_for
from tests.functional.prometheus.harness import DEADLINE_SECONDS, Exporter, Prometheus
from tests.functional.prometheus.pages import Rank, page, pod

pytestmark = pytest.mark.functional
ROOT = Path(__file__).parents[3]
NAMESPACE = "metrics-test"


@pytest.fixture
def token(fast_api_server: FastCluster, tmp_path: Path) -> Path:
    """Token of the account of rbac.yaml, which may do nothing but read pods."""
    kubectl = fast_api_server.kubectl
    for name in ("gearshift-system", NAMESPACE):
        kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    kubectl.apply(*yaml.safe_load_all((ROOT / "config/prometheus/rbac.yaml").read_text()))
    file = tmp_path / "token"
    file.write_text(kubectl("create", "token", "gearshift-prometheus", "-n", "gearshift-system"))
    return file


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    """It stands for every port of every pod."""
    found = Exporter(page(Rank(running=1)))
    yield found
    found.close()


@pytest.fixture
def targets(fast_api_server: FastCluster, token: Path, tmp_path: Path) -> Iterator[Path]:
    """The file that discovery keeps."""
    config = json.loads(fast_api_server.kubectl("config", "view", "--raw", "-o", "json"))
    cluster = config["clusters"][0]["cluster"]
    file, ca = tmp_path / "targets.json", tmp_path / "ca.crt"
    ca.write_text(fast_api_server.kubectl("get", "cm", "kube-root-ca.crt", "-o", r"jsonpath={.data.ca\.crt}"))
    command = [
        sys.executable,
        "-m",
        "tools.prometheus.discover",
        "--api-server",
        cluster["server"],
        "--interval",
        "0.2",
    ]
    command += ["--token-file", str(token), "--ca-file", str(ca), "--targets", str(file)]
    with (tmp_path / "discover.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stderr=log)
    yield file
    process.terminate()
    assert process.wait(10) == 0, (tmp_path / "discover.log").read_text()


def create(cluster: FastCluster, body: dict[str, Any]) -> None:
    """A pod as if it ran: no node is there to say so."""
    status = body.pop("status")
    body["metadata"].pop("uid")
    cluster.kubectl.apply(body)
    kind, name = f"pod/{body['metadata']['name']}", body["metadata"]["namespace"]
    cluster.kubectl("patch", kind, "-n", name, "--subresource=status", "-p", json.dumps({"status": status}))


def test_pods_are_scraped_by_component_from_creation_to_deletion(
    fast_api_server: FastCluster, exporter: Exporter, targets: Path, tmp_path: Path
) -> None:
    """Engine and sidecar of one pod, router and operator; other ports, phases and applications are left alone."""
    port = exporter.port

    def made(name: str, **how: Any) -> dict[str, Any]:
        return pod(name, port, namespace=NAMESPACE, **how)

    stranger = made("stranger")
    stranger["metadata"]["labels"]["app.kubernetes.io/name"] = "other"
    for body in (
        made("chat-0", sidecar_ports={"control": port + 1, "metrics": port}),
        made("chat-1", phase="Pending"),
        made("chat-router", component="router", port_name="metrics"),
        made("gearshift-operator", component="operator", port_name="metrics", service=""),
        stranger,
    ):
        create(fast_api_server, body)
    wait_for(lambda: targets.exists() and "chat-router" in targets.read_text(), "targets", timeout_seconds=20)
    prometheus = Prometheus(tmp_path, targets)
    try:
        expected = {
            ("gearshift-engine", "engine", "chat-0", "chat"),
            ("gearshift-sidecar", "sidecar", "chat-0", "chat"),
            ("gearshift-router", "router", "chat-router", "chat"),
            ("gearshift-operator", "operator", "gearshift-operator", ""),
        }
        wait_for(lambda: found(prometheus) == expected, "the four targets", timeout_seconds=DEADLINE_SECONDS)
        fast_api_server.kubectl("delete", "pod", "chat-0", "-n", NAMESPACE, "--force", "--grace-period=0")
        left = {entry for entry in expected if entry[2] != "chat-0"}
        wait_for(lambda: found(prometheus) == left, "chat-0 to be gone", timeout_seconds=DEADLINE_SECONDS)
    finally:
        prometheus.close()


def found(prometheus: Prometheus) -> set[tuple[str, str, str, str]]:
    """Job, component, pod and service of what is up."""
    return {
        (labels["job"], labels["component"], labels["pod"], labels.get("service", ""))
        for labels in prometheus.labels("up == 1")
        if labels["namespace"] == NAMESPACE
    }


def test_the_account_may_read_pods_only(fast_api_server: FastCluster, token: Path) -> None:
    """Nothing else, and nothing more of pods."""
    assert token.exists()
    who = ("--as", "system:serviceaccount:gearshift-system:gearshift-prometheus", "-A")
    assert fast_api_server.kubectl.succeeds("auth", "can-i", "watch", "pods", *who)
    for verb, resource in (("create", "pods"), ("get", "secrets"), ("list", "nodes"), ("get", "inferenceservices")):
        assert not fast_api_server.kubectl.succeeds("auth", "can-i", verb, resource, *who)
