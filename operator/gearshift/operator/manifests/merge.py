# SPDX-License-Identifier: Apache-2.0
"""Strategic merge of ``spec.pod.template`` over the pod that the operator makes, and what it may not touch.

Lists that Kubernetes merges by a key are merged by it here; other lists are replaced; ``null`` removes a field;
``$patch: delete`` removes an entry and ``$patch: replace`` replaces a list or object.
"""

import copy
from typing import Any, Final

MERGE_KEYS: Final = {
    "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name", "env": "name",
    "volumeMounts": "mountPath", "volumeDevices": "devicePath", "ports": "containerPort", "imagePullSecrets": "name",
    "hostAliases": "ip", "topologySpreadConstraints": "topologyKey", "resourceClaims": "name",
    "schedulingGates": "name", "conditions": "type",
}  # fmt: skip
"""Merge keys of the lists of a pod, by the name of the field."""


class MergeError(ValueError):
    """The patch can't be merged; the message names the field."""


def merge(base: Any, patch: Any, path: str = "") -> Any:
    """``patch`` over ``base``; neither is changed.

    Raises:
        MergeError: the patch has another shape than the field, or lacks a merge key.
    """
    if isinstance(base, dict):
        return _merge_objects(base, _object(patch, path), path)
    return copy.deepcopy(_stripped(patch, path))


def _merge_objects(base: dict[str, Any], patch: dict[str, Any], path: str) -> dict[str, Any]:
    if patch.get("$patch") == "replace":
        return {key: copy.deepcopy(value) for key, value in patch.items() if key != "$patch"}
    result = copy.deepcopy(base)
    for key, value in patch.items():
        where = f"{path}.{key}" if path else key
        if key.startswith("$"):
            raise MergeError(f"{where}: this directive is not supported here")
        if value is None:
            result.pop(key, None)
        elif key in MERGE_KEYS and isinstance(value, list):
            result[key] = _merge_list(result.get(key) or [], value, MERGE_KEYS[key], where)
        elif isinstance(result.get(key), dict):
            result[key] = merge(result[key], value, where)
        else:
            result[key] = copy.deepcopy(_stripped(value, where))
    return result


def _merge_list(base: list[Any], patch: list[Any], merge_key: str, path: str) -> list[Any]:
    if {"$patch": "replace"} in patch:
        return [copy.deepcopy(entry) for entry in patch if entry != {"$patch": "replace"}]
    result = {entry[merge_key]: entry for entry in base}
    for index, entry in enumerate(patch):
        key = _object(entry, f"{path}[{index}]").get(merge_key)
        if key is None:
            raise MergeError(f"{path}[{index}]: has no {merge_key}")
        where = f"{path}[{key}]"
        if entry.get("$patch") == "delete":
            result.pop(key, None)
        elif key in result:
            result[key] = _merge_objects(result[key], entry, where)
        else:
            result[key] = copy.deepcopy(_stripped(entry, where))
    return list(result.values())


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MergeError(f"{path or 'template'}: {value!r} is not an object")
    return value


def _stripped(value: Any, path: str) -> Any:
    """``value`` as a new field: without nulls; refused when it has directives but nothing to apply them to."""
    if isinstance(value, list):
        return [_stripped(entry, f"{path}[{index}]") for index, entry in enumerate(value)]
    if not isinstance(value, dict):
        return value
    directive = next((key for key in value if key.startswith("$")), None)
    if directive is not None:
        raise MergeError(f"{path}.{directive}: there is nothing of that name to apply it to")
    return {key: _stripped(entry, f"{path}.{key}") for key, entry in value.items() if entry is not None}
