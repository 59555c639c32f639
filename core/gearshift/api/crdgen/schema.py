# SPDX-License-Identifier: Apache-2.0
"""Pydantic's JSON schema -> a structural schema of OpenAPI v3 as Kubernetes wants it.

Structural means: no ``$ref``, no ``anyOf`` with null, a type at every level; and for the cost estimate of CEL rules,
a bound on every list, string and map.
"""

from typing import Any

from pydantic import BaseModel

JsonSchema = dict[str, Any]
_DROPPED = ("title", "additionalProperties", "propertyNames", "default", "discriminator")


class SchemaError(ValueError):
    """The model can't be expressed as a structural schema; the message names the path."""


def structural(model: type[BaseModel]) -> JsonSchema:
    """Structural schema of ``model``.

    Raises:
        SchemaError: a list, string or map has no bound, or a type is not expressible.
    """
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(raw, raw.get("$defs", {}), model.__name__)


def _resolve(node: JsonSchema, defs: dict[str, JsonSchema]) -> JsonSchema:
    """Follow ``$ref`` and unwrap ``X | None``; keys beside the reference win."""
    while True:
        if "$ref" in node:
            target = defs[node["$ref"].rsplit("/", 1)[-1]]
            node = target | {key: value for key, value in node.items() if key != "$ref"}
        elif "anyOf" in node:
            options = [option for option in node["anyOf"] if option.get("type") != "null"]
            if len(options) != 1:
                return node
            node = options[0] | {key: value for key, value in node.items() if key != "anyOf"}
        elif len(node.get("allOf", ())) == 1:
            node = node["allOf"][0] | {key: value for key, value in node.items() if key != "allOf"}
        else:
            return node


def _convert(node: JsonSchema, defs: dict[str, JsonSchema], path: str) -> JsonSchema:
    node = _resolve(node, defs)
    if "anyOf" in node or "oneOf" in node:
        raise SchemaError(f"{path}: a union is not structural")
    kept = {key: value for key, value in node.items() if key not in (*_DROPPED, "$defs", "properties", "items")}
    if "description" in kept:
        kept["description"] = " ".join(str(kept["description"]).split())
    if node.get("default") is not None:
        kept["default"] = _without_none(node["default"])
    if "const" in kept:
        kept["enum"] = [kept.pop("const")]
    kind = node.get("type")
    if kind is None:
        raise SchemaError(f"{path}: no type")
    if kind == "object":
        return kept | _object(node, defs, path)
    if kind == "array":
        return kept | _array(node, defs, path)
    if kind == "integer":
        kept["format"] = "int64"
    if kind == "string":
        _check_string(node, path)
    return kept


def _without_none(value: Any) -> Any:
    """A default as a manifest would state it: a field that is None is left out."""
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value


def _object(node: JsonSchema, defs: dict[str, JsonSchema], path: str) -> JsonSchema:
    if node.get("x-kubernetes-preserve-unknown-fields"):
        return {}
    if "properties" in node:
        return {
            "properties": {name: _convert(child, defs, f"{path}.{name}") for name, child in node["properties"].items()}
        }
    if not isinstance(node.get("additionalProperties"), dict):
        raise SchemaError(f"{path}: a map needs the type of its values")
    if "maxProperties" not in node:
        raise SchemaError(f"{path}: a map needs maxProperties")
    # The names that a map may have are not expressible in a structural schema.
    return {"additionalProperties": _convert(node["additionalProperties"], defs, f"{path}[*]")}


def _array(node: JsonSchema, defs: dict[str, JsonSchema], path: str) -> JsonSchema:
    if "maxItems" not in node:
        raise SchemaError(f"{path}: a list needs maxItems")
    return {"items": _convert(node["items"], defs, f"{path}[]")}


def _check_string(node: JsonSchema, path: str) -> None:
    if not any(key in node for key in ("maxLength", "enum", "const")) and node.get("format") != "date-time":
        raise SchemaError(f"{path}: a string needs maxLength")
