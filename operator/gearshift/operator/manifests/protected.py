# SPDX-License-Identifier: Apache-2.0
"""What ``spec.pod.template`` may not change: what makes an engine pod work, and keeps its token in the sidecar."""

from collections.abc import Iterator
from typing import Any, Final

from gearshift.api import names
from gearshift.operator.manifests.meta import Manifest
from gearshift.operator.manifests.security import API_TOKEN_VOLUME

_POD_FIELDS: Final = (
    "restartPolicy", "enableServiceLinks", "automountServiceAccountToken", "serviceAccountName", "serviceAccount",
    "terminationGracePeriodSeconds", "activeDeadlineSeconds", "nodeName", "shareProcessNamespace", "hostname",
    "subdomain", "ephemeralContainers",
)  # fmt: skip
_CONTAINER_FIELDS: Final = (
    "image", "command", "args", "restartPolicy", "lifecycle", "startupProbe", "livenessProbe", "readinessProbe",
    "stdin", "tty", "workingDir", "envFrom",
)  # fmt: skip
_KEYED_LISTS: Final = (("env", "name"), ("volumeMounts", "mountPath"), ("ports", "containerPort"))
_TEMPLATE_FIELDS: Final = {"metadata", "spec"}
_METADATA_FIELDS: Final = {"labels", "annotations"}
_OWN_PARTS: Final = (("containers", names.CONTAINER_ENGINE), ("initContainers", names.CONTAINER_SIDECAR))


def violation(base: Manifest, merged: Manifest, template: dict[str, Any]) -> str | None:
    """Path of the first field of the template that it may not set or change, with the reason; None when all is well."""
    return next(_violations(base, merged, template), None)


def _violations(base: Manifest, merged: Manifest, template: dict[str, Any]) -> Iterator[str]:
    for key in template:
        if key not in _TEMPLATE_FIELDS:
            yield f"spec.pod.template.{key}: a pod template has metadata and spec only"
    for key in template.get("metadata") or {}:
        if key not in _METADATA_FIELDS:
            yield f"spec.pod.template.metadata.{key}: only labels and annotations can be added"
    for key, value in base["metadata"]["labels"].items():
        if merged["metadata"].get("labels", {}).get(key) != value:
            yield f"spec.pod.template.metadata.labels[{key}]: is set by the operator"
    before, after = base["spec"], merged["spec"]
    yield from _changed(before, after, _POD_FIELDS, "spec.pod.template.spec")
    yield from _changed_entries(before, after, "volumes", "name", "spec.pod.template.spec")
    for section, name in _OWN_PARTS:
        yield from _container(before, after, section, name)
    yield from _token_mounts(after)


def _container(before: Manifest, after: Manifest, section: str, name: str) -> Iterator[str]:
    path = f"spec.pod.template.spec.{section}[{name}]"
    old, new = _named(before, section, name), _named(after, section, name)
    if new is None or old is None:
        yield f"{path}: can't be removed"
        return
    yield from _changed(old, new, _CONTAINER_FIELDS, path)
    for field, key in _KEYED_LISTS:
        yield from _changed_entries(old, new, field, key, path)
    before_gpus, after_gpus = (
        entry.get("resources", {}).get("limits", {}).get("nvidia.com/gpu") for entry in (old, new)
    )
    if before_gpus != after_gpus:
        yield f"{path}.resources.limits[nvidia.com/gpu]: is set by spec.pod.accelerators"


def _changed(before: Manifest, after: Manifest, fields: tuple[str, ...], path: str) -> Iterator[str]:
    for field in fields:
        if before.get(field) != after.get(field):
            yield f"{path}.{field}: is set by the operator"


def _changed_entries(before: Manifest, after: Manifest, field: str, key: str, path: str) -> Iterator[str]:
    present = {entry.get(key): entry for entry in after.get(field) or []}
    for entry in before.get(field) or []:
        if present.get(entry[key]) != entry:
            yield f"{path}.{field}[{entry[key]}]: is set by the operator"


def _token_mounts(spec: Manifest) -> Iterator[str]:
    """No other container than the sidecar sees the token of the pod."""
    for section in ("containers", "initContainers"):
        for container in spec.get(section) or []:
            mounts = {mount.get("name") for mount in container.get("volumeMounts") or []}
            if API_TOKEN_VOLUME in mounts and container.get("name") != names.CONTAINER_SIDECAR:
                where = f"spec.pod.template.spec.{section}[{container.get('name')}].volumeMounts"
                yield f"{where}: {API_TOKEN_VOLUME} belongs to the sidecar"


def _named(spec: Manifest, section: str, name: str) -> Manifest | None:
    return next((entry for entry in spec.get(section) or [] if entry.get("name") == name), None)
