# SPDX-License-Identifier: Apache-2.0
"""Cross-field rules, each written once for the API server (CEL) and once for Python.

The API server refuses a manifest at apply; the operator checks again what it reads, because a CRD of an older version
may have let it in. Tests hold the two forms together on a real API server.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule on one object of the spec.

    ``cel`` sees the object as ``self``; ``message_cel`` is a CEL string that names field and bad value.
    ``holds`` and ``message`` are the same for the pydantic model.
    """

    cel: str
    message_cel: str
    holds: Callable[[Any], bool]
    message: Callable[[Any], str]

    def schema(self) -> dict[str, str]:
        """Entry of ``x-kubernetes-validations``."""
        return {"rule": self.cel, "messageExpression": self.message_cel}


def check(rules: tuple[Rule, ...], value: Any) -> None:
    """Apply ``rules`` to a model.

    Raises:
        ValueError: the message of the first rule that does not hold.
    """
    for rule in rules:
        if not rule.holds(value):
            raise ValueError(rule.message(value))


def schema(rules: tuple[Rule, ...]) -> dict[str, Any]:
    """``json_schema_extra`` that carries the CEL form of ``rules``."""
    return {"x-kubernetes-validations": [rule.schema() for rule in rules]}
