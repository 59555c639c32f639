# SPDX-License-Identifier: Apache-2.0
"""The CRD generator: what it writes, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import Field

from gearshift.api.base import Duration, FrozenModel, Timestamp
from gearshift.api.crdgen import SchemaError, crd, structural
from gearshift.api.crdgen.__main__ import files, main, to_yaml

FORBIDDEN = {"$ref", "anyOf", "allOf", "oneOf", "$defs", "title", "const", "propertyNames"}


class Inner(FrozenModel):
    """An inner object."""

    long_name: int = Field(default=3, ge=1)
    note: str | None = Field(default=None, max_length=5)


class Outer(FrozenModel):
    """An outer object."""

    inner: Inner = Inner()
    many: list[Inner] = Field(default=[], max_length=4)
    by_name: dict[str, Duration] = Field(default={}, max_length=3)
    at: Timestamp | None = None


def test_schema_is_structural_and_in_wire_names() -> None:
    inner = {
        "type": "object",
        "description": "An inner object.",
        "properties": {
            "longName": {"type": "integer", "format": "int64", "minimum": 1, "default": 3},
            "note": {"type": "string", "maxLength": 5},
        },
    }
    schema = structural(Outer)
    assert schema["properties"]["inner"] == inner | {"default": {"longName": 3}}
    assert schema["properties"]["many"] == {"type": "array", "maxItems": 4, "default": [], "items": inner}
    assert schema["properties"]["byName"]["maxProperties"] == 3
    assert schema["properties"]["at"] == {"type": "string", "format": "date-time"}


class Unbounded(FrozenModel):
    """Has a list without a bound."""

    items: list[int] = Field(default=[])


class LooseText(FrozenModel):
    """Has a string without a bound, one level down."""

    texts: list[str] = Field(default=[], max_length=2)


class Union(FrozenModel):
    """Has a union."""

    value: int | bool = 1


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Unbounded, "Unbounded.items: a list needs maxItems"),
        (LooseText, "LooseText.texts[]: a string needs maxLength"),
        (Union, "Union.value: a union is not structural"),
    ],
)
def test_what_has_no_structural_form_is_refused_by_path(model: type[FrozenModel], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        structural(model)
    assert str(caught.value) == message


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | set().union(*map(keys, value.values()))
    if isinstance(value, list):
        return set().union(*map(keys, value))
    return set()


def test_crd_has_no_key_that_kubernetes_does_not_know() -> None:
    assert not keys(crd()) & FORBIDDEN


def test_yaml_reads_back_as_what_was_written() -> None:
    assert yaml.safe_load(to_yaml(crd())) == crd()


def test_check_fails_on_a_difference_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--check"]) == 0
    (name,) = files()
    (tmp_path / name).write_text(files()[name].replace("gsvc", "other"))
    assert main([str(tmp_path), "--check"]) == 1
    assert '+      - "gsvc"' in capsys.readouterr().out
    assert "other" in (tmp_path / name).read_text()
