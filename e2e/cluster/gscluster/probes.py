# SPDX-License-Identifier: Apache-2.0
"""Small pods that the cluster's own tests run: they satisfy the `restricted` level and answer HTTP with their name."""

from typing import Any

IMAGE = "gearshift.local/gearshift:dev"
PORT = 8080
USER_ID = 65532

SERVER = f"""
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["HOSTNAME"].encode())
http.server.ThreadingHTTPServer(("", {PORT}), Handler).serve_forever()
"""


def namespace(name: str) -> dict[str, Any]:
    """Return a namespace that enforces the `restricted` level."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def server_pod(name: str, namespace_name: str, *, node: str | None = None, gpus: int = 0) -> dict[str, Any]:
    """Return a pod, labelled `app: probe`, that is Ready once it answers on port 8080."""
    container = {
        "name": "server",
        "image": IMAGE,
        "command": ["python", "-c", SERVER],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {},
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1, "timeoutSeconds": 5},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    spec = {
        "containers": [container],
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "fsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}),
    }
    metadata = {"name": name, "namespace": namespace_name, "labels": {"app": "probe"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def service(name: str, namespace_name: str) -> dict[str, Any]:
    """Return a Service on port 80 over every `server_pod` of the namespace."""
    spec = {"selector": {"app": "probe"}, "ports": [{"port": 80, "targetPort": PORT}]}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace_name},
        "spec": spec,
    }
