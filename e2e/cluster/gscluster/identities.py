# SPDX-License-Identifier: Apache-2.0
"""Who may talk to the API server: one random token for each user, and a kubeconfig file for each of them."""

import base64
import json
import secrets
from pathlib import Path

GROUPS = {
    "admin": ("admin", "system:masters"),
    "controllers": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", ""),
}


def users(node_names: list[str]) -> dict[str, tuple[str, str]]:
    """Return short name to (user, group) for the control plane and for the kubelet of each node."""
    return GROUPS | {name: (f"system:node:{name}", "system:nodes") for name in node_names}


def write_identities(folder: Path, server: str, authority: Path, node_names: list[str]) -> Path:
    """Write SHORT.kubeconfig for every user and return the token file for the API server's `--token-auth-file`."""
    folder.mkdir(mode=0o700, parents=True)
    lines = []
    for short, (user, group) in users(node_names).items():
        token = secrets.token_hex(16)
        lines.append(f'{token},{user},{short},"{group}"' if group else f"{token},{user},{short}")
        write_kubeconfig(folder / f"{short}.kubeconfig", server, authority, token)
    tokens = folder / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text("\n".join(lines) + "\n")
    return tokens


def write_kubeconfig(path: Path, server: str, authority: Path, token: str) -> None:
    """Write a kubeconfig (JSON, which is YAML) that holds all it needs, so that it can be copied."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "gearshift", "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}
        ],
        "users": [{"name": "gearshift", "user": {"token": token}}],
        "contexts": [{"name": "gearshift", "context": {"cluster": "gearshift", "user": "gearshift"}}],
        "current-context": "gearshift",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1) + "\n")


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
