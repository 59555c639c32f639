# SPDX-License-Identifier: Apache-2.0
"""A namespace for one test: it enforces the `restricted` level, and its end is checked."""

from pathlib import Path
from typing import Any

from gscluster.kubectl import Kubectl
from gsstack import manifests
from gsstack.services import Service

PASSING = {"events", "events.events.k8s.io", "podmetrics.metrics.k8s.io"}
"""Types that are no objects of a service: what was said about it expires by itself."""


class Space:
    """A namespace and what a test does in it."""

    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self.kubectl = kubectl
        self.name = name
        self._volumes: list[str] = []
        self._cluster_wide = _names(kubectl, None)
        kubectl.apply(manifests.namespace(name))

    def apply(self, manifest: dict[str, Any]) -> Service:
        """Apply an ``InferenceService`` of this namespace, server-side, as the user `e2e`."""
        self.kubectl.apply_server_side(manifest)
        return Service(self.kubectl, self.name, manifest["metadata"]["name"])

    def simulated(self, name: str, *, args: list[str] | None = None, **parts: Any) -> dict[str, Any]:
        """Manifest of a service on the Simulated engine, in this namespace."""
        return manifests.simulated(name, self.name, args=args, **parts)

    def serve(self, name: str, *, args: list[str] | None = None, timeout_seconds: int = 300, **parts: Any) -> Service:
        """Apply such a service; return when it and all its pods are ready."""
        service = self.apply(self.simulated(name, args=args, **parts))
        service.wait_ready(timeout_seconds)
        service.wait_settled(timeout_seconds)
        service.wait_reachable()
        return service

    def mount(self, name: str, folder: Path) -> None:
        """Make a claim that pods of this namespace mount a folder of this machine by; it ends with the namespace."""
        volume, claim = manifests.folder_volume(name, self.name, folder)
        self._volumes.append(str(volume["metadata"]["name"]))
        self.kubectl.apply(volume, claim)

    def objects(self) -> set[str]:
        """``resource/name`` of every object in the namespace, whatever its type, but events."""
        return _names(self.kubectl, self.name)

    def end(self) -> None:
        """Delete the namespace; raise AssertionError when something of the test is left outside of it.

        Services and pods go first: the namespace controller would guess from the pods' grace period when to look again.
        """
        self.kubectl("delete", "gsvc", "--all", "-n", self.name, "--cascade=foreground", timeout_seconds=180)
        self.kubectl("wait", "pod", "--all", "-n", self.name, "--for=delete", "--timeout=120s", timeout_seconds=130)
        self.kubectl("delete", "namespace", self.name, "--wait=true", timeout_seconds=180)
        for volume in self._volumes:
            self.kubectl("delete", "persistentvolume", volume)
        left = _names(self.kubectl, None) - self._cluster_wide
        assert not left, f"test in namespace {self.name} left {sorted(left)}"


def _names(kubectl: Kubectl, namespace: str | None) -> set[str]:
    """All objects of a namespace, or all that are in none."""
    types = kubectl(
        "api-resources", "--verbs=list,delete", f"--namespaced={str(namespace is not None).lower()}", "-o", "name"
    )
    wanted = ",".join(sorted(set(types.split()) - PASSING))
    words = ["get", wanted, "-o", "name", "--ignore-not-found"]
    return set(kubectl(*words, *(["-n", namespace] if namespace else [])).split())
