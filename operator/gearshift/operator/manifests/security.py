# SPDX-License-Identifier: Apache-2.0
"""Security contexts that satisfy the ``restricted`` pod security level, and the tokens that pods are given."""

from typing import Final

from gearshift.api import names
from gearshift.operator.manifests.meta import Manifest

USER_ID: Final = 65532
API_TOKEN_DIR: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
API_TOKEN_VOLUME: Final = "gearshift-api-token"
CONTROL_TOKEN_VOLUME: Final = "gearshift-control-token"
_API_TOKEN_SECONDS: Final = 3607  # the lifetime that API servers extend for in-cluster clients
_CONTROL_TOKEN_SECONDS: Final = 3600


def pod_security() -> Manifest:
    """Security context of a pod."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER_ID,
        "runAsGroup": USER_ID,
        "fsGroup": USER_ID,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> Manifest:
    """Security context of a container."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def api_token_volume() -> Manifest:
    """What a client of the API server needs, as automounting would give it, but only to containers that mount it."""
    ca = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    own = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    token = {"path": "token", "expirationSeconds": _API_TOKEN_SECONDS}
    return _projected(
        API_TOKEN_VOLUME, [{"serviceAccountToken": token}, {"configMap": ca}, {"downwardAPI": {"items": [own]}}]
    )


def control_token_volume() -> Manifest:
    """The token that a caller of the sidecars' control API presents."""
    name = names.TOKEN_FILE.rsplit("/", 1)[1]
    token = {"path": name, "audience": names.TOKEN_AUDIENCE, "expirationSeconds": _CONTROL_TOKEN_SECONDS}
    return _projected(CONTROL_TOKEN_VOLUME, [{"serviceAccountToken": token}])


def _projected(name: str, sources: list[Manifest]) -> Manifest:
    return {"name": name, "projected": {"defaultMode": 0o440, "sources": sources}}


def api_token_mount() -> Manifest:
    """Mount of `api_token_volume`."""
    return {"name": API_TOKEN_VOLUME, "mountPath": API_TOKEN_DIR, "readOnly": True}


def control_token_mount() -> Manifest:
    """Mount of `control_token_volume`."""
    folder = names.TOKEN_FILE.rsplit("/", 1)[0]
    return {"name": CONTROL_TOKEN_VOLUME, "mountPath": folder, "readOnly": True}
