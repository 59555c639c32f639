# SPDX-License-Identifier: Apache-2.0
"""How to reach the API server: the mounted service account, or the kubeconfig that ``KUBECONFIG`` names."""

import base64
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gearshift.router.tokens import TokenFile

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class AccessError(Exception):
    """The environment doesn't say how to reach the API server."""


@dataclass(frozen=True, slots=True)
class KubeAccess:
    """Address and credentials of the API server."""

    server: str  # https://host:port
    tls: ssl.SSLContext | None = None
    token: TokenFile | None = None
    fixed_headers: Mapping[str, str] = field(default_factory=dict)

    def headers(self) -> dict[str, str]:
        """Headers of one request, with the present token."""
        return {**self.fixed_headers, **(self.token.header() if self.token else {})}


def find_access(env: Mapping[str, str] = os.environ) -> KubeAccess:
    """Access from the environment: ``KUBECONFIG`` wins over the pod's service account.

    Raises:
        AccessError: neither is there, or one is incomplete.
    """
    if path := env.get("KUBECONFIG"):
        return from_kubeconfig(Path(path))
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise AccessError("no Kubernetes API: neither KUBECONFIG nor KUBERNETES_SERVICE_HOST is set")
    tls = ssl.create_default_context(cafile=str(SERVICE_ACCOUNT / "ca.crt"))
    host = f"[{host}]" if ":" in host else host
    return KubeAccess(f"https://{host}:{port}", tls, TokenFile(SERVICE_ACCOUNT / "token"))


def from_kubeconfig(path: Path) -> KubeAccess:
    """Access by the current context of a kubeconfig: certificate or token, inline or as files; no plugins.

    Raises:
        AccessError: the file lacks its current context or what that names.
    """
    import yaml  # noqa: PLC0415 - only for kubeconfigs: in a pod there's none

    document = yaml.safe_load(path.read_text())
    context = _named(document, "context", document.get("current-context"), path)
    cluster = _named(document, "cluster", context.get("cluster"), path)
    user = _named(document, "user", context.get("user"), path)
    server = str(cluster["server"]).rstrip("/")
    fixed = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    token = TokenFile(path.parent / user["tokenFile"]) if "tokenFile" in user else None
    return KubeAccess(server, _tls(cluster, user, path.parent) if server.startswith("https:") else None, token, fixed)


def _named(document: dict[str, Any], kind: str, name: str | None, path: Path) -> dict[str, Any]:
    for entry in document.get(f"{kind}s") or []:
        if entry.get("name") == name:
            return dict(entry[kind])
    raise AccessError(f"{path}: no {kind} is named {name!r}")


def _tls(cluster: dict[str, Any], user: dict[str, Any], base: Path) -> ssl.SSLContext:
    authority = _material(cluster, "certificate-authority", base)
    tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
    certificate, key = _material(user, "client-certificate", base), _material(user, "client-key", base)
    if certificate and key:
        with tempfile.NamedTemporaryFile(suffix=".pem") as chain:  # mode 0600; ssl reads files only
            chain.write(certificate + b"\n" + key)
            chain.flush()
            tls.load_cert_chain(chain.name)
    return tls


def _material(source: dict[str, Any], field_name: str, base: Path) -> bytes | None:
    if inline := source.get(f"{field_name}-data"):
        return base64.b64decode(str(inline))
    if path := source.get(field_name):
        return (base / str(path)).read_bytes()
    return None
