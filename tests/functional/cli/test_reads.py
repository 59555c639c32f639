# SPDX-License-Identifier: Apache-2.0
"""Reading services of a real API server, reaching it, and what is said where neither works."""

import http.server
import json
import socket
import subprocess
import threading
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.config import incluster_config, kube_config

from gearshift.cli import kube, kubectl
from gscluster import paths
from gscluster.fast import FastCluster
from tests.functional.cli.conftest import Run, write_status
from tests.functional.operator.world import ROOT, Space

pytestmark = pytest.mark.functional


def test_services_are_listed_and_shown(space: Space, run: Run) -> None:
    assert run("status").err == f"no inferenceservices in namespace {space.name}\n"
    assert run("status", "-o", "json").json == {"items": []}
    space.apply("chat")
    space.apply("code")
    write_status(space, replicas=1, readyReplicas=1, layout="TP")
    lines = [line.split() for line in run("status").out.splitlines()]
    assert [line[0] for line in lines] == ["NAME", "chat", "code"]
    assert lines[1][2:5] == ["TP", "-", "1/1"]
    everywhere = run("status", "-A").out.splitlines()
    assert everywhere[0].startswith("NAMESPACE")
    assert [space.name, "code"] in [line.split()[:2] for line in everywhere]
    assert f"Name:        {space.name}/chat" in run("status", "chat").out
    assert run("status", "chat", "-o", "json").json["readyReplicas"] == 1
    assert yaml.safe_load(run("explain", "chat", "-o", "yaml").out)["decision"] is None
    assert run("history", "chat", "-o", "json").json["transitionHistory"] == []
    for command in ("status", "explain", "history"):
        said = run(command, "none")
        assert (said.code, said.out) == (1, "")
        assert said.err == f"kubectl gearshift: inferenceservice {space.name}/none not found\n"


def config(cluster: FastCluster, folder: Path, **changes: Any) -> str:
    """The administrator's kubeconfig with another server or namespace, or without trust in the server."""
    body = yaml.safe_load(cluster.kubeconfig.read_text())
    if "server" in changes:
        body["clusters"][0]["cluster"]["server"] = changes["server"]
    if changes.get("insecure"):
        body["clusters"][0]["cluster"] = {"server": cluster.endpoints.server, "insecure-skip-tls-verify": True}
    body["contexts"][0]["context"]["namespace"] = changes.get("namespace", "default")
    path = folder / "config"
    path.write_text(yaml.safe_dump(body))
    return str(path)


def test_the_namespace_is_that_of_the_context(space: Space, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space.apply("chat")
    assert kubectl.main(["status", "chat", "--kubeconfig", config(space.cluster, tmp_path, namespace=space.name)]) == 0
    assert f"{space.name}/chat" in capsys.readouterr().out


def test_a_kubeconfig_that_trusts_any_server_is_used_in_silence(
    cluster: FastCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubectl.main(["status", "--kubeconfig", config(cluster, tmp_path, insecure=True)]) == 0
    assert capsys.readouterr().err == "no inferenceservices in namespace default\n"


def test_in_a_pod_without_a_kubeconfig_its_account_is_used(
    space: Space, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = urllib.parse.urlsplit(space.cluster.endpoints.server)
    space.cluster.kubectl("create", "serviceaccount", "someone", "-n", space.name)
    token = space.cluster.kubectl("create", "token", "someone", "-n", space.name)
    (tmp_path / "token").write_text(token.strip())
    (tmp_path / "namespace").write_text(space.name)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(server.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(space.cluster.folder / "pki/ca.crt"))
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    monkeypatch.setattr(kube, "_NAMESPACE_FILE", tmp_path / "namespace")
    assert kubectl.main(["status"]) == 1
    said = capsys.readouterr().err
    assert f"inferenceservices of namespace {space.name}: " in said
    assert f'User "system:serviceaccount:{space.name}:someone" cannot list resource' in said


def test_an_api_server_that_is_away_is_named(
    cluster: FastCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = f"https://127.0.0.1:{taken.getsockname()[1]}"
    assert kubectl.main(["status", "--kubeconfig", config(cluster, tmp_path, server=server)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"kubectl gearshift: {server} can't be reached: ")
    assert said.count("\n") == 1


def test_an_api_server_that_asks_for_patience_is_asked_again(
    cluster: FastCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    class Busy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(429 if len(asked) < 3 else 200)
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(b'{"items": []}')

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = config(cluster, tmp_path, server=f"http://127.0.0.1:{server.server_port}")
        assert kubectl.main(["status", "--kubeconfig", path]) == 0
        server.shutdown()
    assert capsys.readouterr().err == "no inferenceservices in namespace default\n"
    assert len(asked) == 3


def test_a_cluster_without_gearshift_is_told_so(
    cluster: FastCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare.yaml"
    bare.write_text(cluster.kubeconfig.read_text())
    absent = {**kube._RESOURCE, "plural": "absents"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kube, "_RESOURCE", absent)
        assert kubectl.main(["status", "--kubeconfig", str(bare)]) == 1
    assert "install Gearshift: kubectl apply --server-side -f crds/" in capsys.readouterr().err


def test_a_kubeconfig_that_can_not_be_used_is_named(
    cluster: FastCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("clusters: [")
    for file in (tmp_path / "none", broken):
        assert kubectl.main(["status", "--kubeconfig", str(file)]) == 2
        assert f"--kubeconfig {file} can't be used: " in capsys.readouterr().err
    assert kubectl.main(["status", "--kubeconfig", str(cluster.kubeconfig), "--context", "other"]) == 2
    assert "--context: 'other' is not in the kubeconfig; known: " in capsys.readouterr().err


def test_an_account_without_rights_is_told_so(space: Space, run: Run, tmp_path: Path) -> None:
    space.cluster.kubectl("create", "serviceaccount", "nobody", "-n", space.name)
    token = space.cluster.kubectl("create", "token", "nobody", "-n", space.name).strip()
    body = yaml.safe_load(space.cluster.kubeconfig.read_text())
    body["users"][0]["user"] = {"token": token}
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(body))
    said = run("status", "chat", "--kubeconfig", str(path))
    assert said.code == 1
    assert "cannot get resource" in said.err
    assert f"{space.name}/chat" in said.err


def test_kubectl_finds_the_plugin_of_a_checkout(space: Space) -> None:
    space.apply("chat")
    words = ["gearshift", "status", "chat", "-n", space.name, "-o", "json"]
    for argv in ([str(paths.kubectl()), *words], ["python", "-m", "gearshift.cli", *words[1:]]):
        answer = subprocess.run(
            [str(ROOT / "tools/run"), "env", f"KUBECONFIG={space.cluster.kubeconfig}", *argv],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (answer.returncode, answer.stderr) == (0, "")
        assert json.loads(answer.stdout)["name"] == "chat"
