# SPDX-License-Identifier: Apache-2.0
"""Base models and scalar types: camelCase on the wire, snake_case in Python, unknown fields refused."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, PlainSerializer
from pydantic.alias_generators import to_camel
from pydantic_core import core_schema

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Model(BaseModel):
    """Mutable wire model: camelCase aliases, unknown fields are an error."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    def dump(self) -> dict[str, Any]:
        """JSON-ready dictionary in wire names, without the fields that are None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class FrozenModel(Model):
    """Immutable wire model."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class TolerantModel(Model):
    """Wire model whose reader ignores fields of a newer writer."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")


class Duration(str):
    """A Go-style duration such as ``90s``, ``1h30m`` or ``50ms``."""

    __slots__ = ()

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION.findall(self))

    @classmethod
    def parse(cls, value: str) -> "Duration":
        """Check ``value`` and wrap it.

        Raises:
            ValueError: not a Go-style duration.
        """
        if not re.match(DURATION_PATTERN, value):
            raise ValueError(f"{value!r} is not a duration such as 90s, 1h30m or 50ms")
        return cls(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls.parse, core_schema.str_schema(max_length=32), serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return {"type": "string", "pattern": DURATION_PATTERN, "maxLength": 32}


def rfc3339(at: datetime) -> str:
    """Kubernetes' form of a time: UTC, whole seconds, ``Z``."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Timestamp = Annotated[datetime, PlainSerializer(rfc3339, return_type=str, when_used="json")]
