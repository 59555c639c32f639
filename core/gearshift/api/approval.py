# SPDX-License-Identifier: Apache-2.0
"""The value of the annotation by which a human approves a plan: ``PLAN`` or ``PLAN@TIME``, so that it can expire."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from gearshift.api.base import rfc3339

APPROVAL_SECONDS: Final = 900.0
"""How long an approval without a time of its own lasts, from when the operator first sees it."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A human's yes to one plan, until a time in seconds since the epoch; None: as long as `APPROVAL_SECONDS`."""

    plan: str
    until: float | None = None

    def __str__(self) -> str:
        """The annotation's value."""
        return self.plan if self.until is None else f"{self.plan}@{rfc3339(datetime.fromtimestamp(self.until, UTC))}"

    @classmethod
    def parse(cls, value: str) -> "Approval":
        """Read an annotation's value. A time without zone is UTC.

        Raises:
            ValueError: names the value that is no plan id, or no RFC 3339 time after it.
        """
        plan, separator, time = value.strip().partition("@")
        if not plan.isalnum():
            raise ValueError(f"{value!r} is not PLAN or PLAN@TIME: {plan!r} is not the id of a plan")
        if not separator:
            return cls(plan)
        try:
            until = datetime.fromisoformat(time)
        except ValueError as problem:
            raise ValueError(f"{value!r} is not PLAN or PLAN@TIME: {problem}") from problem
        return cls(plan, (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp())
