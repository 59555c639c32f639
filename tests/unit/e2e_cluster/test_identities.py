# SPDX-License-Identifier: Apache-2.0
"""Every user of the API server has a token of its own, and only root can read it."""

import base64
import json
from pathlib import Path

from gscluster.identities import write_identities


def test_tokens_of_the_file_and_of_the_kubeconfigs_agree(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("certificate")
    tokens = write_identities(tmp_path / "identities", "https://10.89.0.2:6443", authority, ["node-1"])
    lines = dict(line.split(",", 1)[::-1] for line in tokens.read_text().splitlines())
    for short, identity in {
        "admin": 'admin,admin,"system:masters"',
        "scheduler": "system:kube-scheduler,scheduler",
        "node-1": 'system:node:node-1,node-1,"system:nodes"',
    }.items():
        config = json.loads((tmp_path / f"identities/{short}.kubeconfig").read_text())
        assert config["users"][0]["user"]["token"] == lines[identity]
        cluster = config["clusters"][0]["cluster"]
        assert cluster["server"] == "https://10.89.0.2:6443"
        assert base64.b64decode(cluster["certificate-authority-data"]) == b"certificate"
    assert len(set(lines.values())) == len(lines) == 5


def test_nobody_else_may_read_them(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    write_identities(tmp_path / "identities", "https://127.0.0.1:1", tmp_path / "ca.crt", [])
    modes = {path.name: path.stat().st_mode & 0o077 for path in (tmp_path / "identities").iterdir()}
    assert set(modes.values()) == {0}
