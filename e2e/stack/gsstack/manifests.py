# SPDX-License-Identifier: Apache-2.0
"""Manifests of the demo and of the tests: services on the Simulated engine and on vLLM's CPU build, and volumes."""

from pathlib import Path
from typing import Any

from gearshift.api import names

Manifest = dict[str, Any]

ENGINE_MOUNT = "/opt/engine"
MODEL_MOUNT = "/models"


def namespace(name: str, *, restricted: bool = True) -> Manifest:
    """A namespace that enforces the ``restricted`` pod security level."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"} if restricted else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def folder_volume(name: str, namespace: str, folder: Path) -> list[Manifest]:
    """A folder of the machine as a claim that pods mount read-only: a restricted namespace allows no hostPath."""
    size = {"storage": "10Gi"}
    volume_name = f"{namespace}-{name}"
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name},
        "spec": {
            "capacity": size,
            "accessModes": ["ReadOnlyMany"],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(folder), "type": "Directory"},
            "claimRef": {"namespace": namespace, "name": name},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "storageClassName": "",
            "volumeName": volume_name,
            "resources": {"requests": size},
        },
    }
    return [volume, claim]


def service(name: str, namespace: str, spec: Manifest) -> Manifest:
    """An ``InferenceService``."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def simulated(name: str, namespace: str, *, args: list[str] | None = None, **parts: Any) -> Manifest:
    """A service of 8-accelerator pods on the Simulated engine; ``parts`` are top-level fields of the spec."""
    engine = {"kind": "Simulated", "args": args or ["--profile=tiny"]}
    return service(name, namespace, {"model": {"uri": "hf://gearshift/simulated"}, "engine": engine} | parts)


def vllm_cpu(name: str, namespace: str, *, accelerators: int = 1, **parts: Any) -> Manifest:
    """A service of vLLM's CPU build, its environment and model mounted from the claims ``engine`` and ``model``."""
    env = {"GEARSHIFT_ENGINE_PYTHON": f"{ENGINE_MOUNT}/bin/python", "VLLM_CPU_CI_ENV": "1", "HF_HUB_OFFLINE": "1"}
    mount = {"name": "engine-env", "mountPath": ENGINE_MOUNT, "readOnly": True}
    volume = {"name": "engine-env", "persistentVolumeClaim": {"claimName": "engine", "readOnly": True}}
    spec = {
        "model": {"uri": "pvc://model", "servedName": "tiny"},
        "engine": {
            "kind": "VLLM",
            "device": "CPU",
            "args": ["--max-model-len=1024", "--dtype=float32", "--enforce-eager"],
            "env": [{"name": key, "value": value} for key, value in env.items()],
        },
        "pod": {
            "accelerators": accelerators,
            "template": {
                "spec": {"containers": [{"name": names.CONTAINER_ENGINE, "volumeMounts": [mount]}], "volumes": [volume]}
            },
        },
    }
    return service(name, namespace, spec | parts)
