# SPDX-License-Identifier: Apache-2.0
"""One InferenceService as the commands read it: its status by type, and of its spec what a human asks about.

The spec is kept as it came, so that the service of a newer operator, with fields that this version does not know, can
still be shown and ordered about.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from gearshift.api.approval import Approval
from gearshift.api.conditions import Condition
from gearshift.api.v1alpha1 import InferenceServiceStatus, Parallelism, RoleSpec
from gearshift.api.vocabulary import Actuation, Role
from gearshift.cli.errors import RefusedError
from gearshift.operator.annotations import Said, said

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Order:
    """What ``spec.override`` orders, and until when."""

    words: str  # "layout DP"
    until: datetime

    @classmethod
    def read(cls, raw: Json) -> "Order":
        """Read an override that the API server let in. A time without zone is UTC."""
        until = datetime.fromisoformat(str(raw["until"]))
        words = " ".join(f"{key} {value}" for key, value in sorted(raw.items()) if key != "until")
        return cls(words, until if until.tzinfo else until.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Service:
    """``body`` is the object as the API server returned it."""

    body: Json
    status: InferenceServiceStatus

    @classmethod
    def read(cls, body: Json) -> "Service":
        """Read an object.

        Raises:
            RefusedError: its status has a value that this version does not know; names object, field and value.
        """
        metadata = body["metadata"]
        try:
            return cls(body, InferenceServiceStatus.model_validate(body.get("status", {})))
        except ValidationError as problem:
            where = f"inferenceservice {metadata['namespace']}/{metadata['name']}"
            raise RefusedError(f"{where}: {first_error(problem, 'status')}") from problem

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def generation(self) -> int:
        return int(self.body["metadata"].get("generation", 0))

    @property
    def created_at(self) -> datetime:
        return datetime.fromisoformat(self.body["metadata"]["creationTimestamp"])

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"inferenceservice {self.namespace}/{self.name}"

    @property
    def annotations(self) -> dict[str, str]:
        return dict(self.body["metadata"].get("annotations") or {})

    @property
    def said(self) -> Said:
        """What a human says by annotations, as the operator reads it."""
        return said(self.annotations)

    @property
    def hold(self) -> str | None:
        """Why the service is held, ``true`` where no reason is given, or None."""
        return (self.said.hold_note or "true") if self.said.hold else None

    @property
    def actuation(self) -> str:
        policy: Json = self.body["spec"].get("policy") or {}
        return str(policy.get("actuation", Actuation.AUTO))

    @property
    def order(self) -> "Order | None":
        """The override in the spec, expired or not."""
        raw = self.body["spec"].get("override")
        return None if raw is None else Order.read(raw)

    @property
    def approval(self) -> Approval | None:
        """The plan that a human has approved, and until when as far as that is known."""
        found, seen = self.said.approval, self.status.approval
        if found is not None and found.until is None and seen is not None and seen.plan == found.plan:
            return Approval(found.plan, seen.until.timestamp())
        return found

    @property
    def layouts(self) -> list[str]:
        """Layouts that pods may take."""
        parallelism: Json = self.body["spec"].get("parallelism") or {}
        return list(parallelism.get("layouts", Parallelism().layouts))

    @property
    def roles(self) -> list[RoleSpec]:
        """Roles that pods may take; of a role no more is read than this version knows."""
        known = {field.alias or name for name, field in RoleSpec.model_fields.items()}
        listed = self.body["spec"].get("roles") or [{"name": Role.UNIFIED}]
        return [RoleSpec.model_validate({key: role[key] for key in known & role.keys()}) for role in listed]

    def condition(self, kind: str) -> Condition | None:
        """A condition by its type."""
        return next((each for each in self.status.conditions if each.type == kind), None)


def first_error(problem: ValidationError, root: str) -> str:
    """``FIELD: what is wrong with VALUE`` of the first error."""
    first = problem.errors(include_url=False)[0]
    if not first["loc"]:  # a rule on the whole object names its field itself
        return f"{root}.{first['msg'].removeprefix('Value error, ')}"
    field = ".".join([root, *(str(part) for part in first["loc"])])
    return f"{field}: {first['msg'].removeprefix('Value error, ')}, not {first['input']!r}"[:500]
