# SPDX-License-Identifier: Apache-2.0
"""What a human says by annotations."""

import pytest

from gearshift.api import names
from gearshift.api.approval import Approval
from gearshift.operator.annotations import said


@pytest.mark.parametrize(
    ("value", "hold", "note"),
    [
        (None, False, ""),
        ("", False, ""),
        ("false", False, ""),
        ("False ", False, ""),
        ("true", True, ""),
        ("True", True, ""),
        ("incident 7, ask ann", True, "incident 7, ask ann"),
        ("0", True, "0"),
        ("x" * 300, True, "x" * 200),
    ],
)
def test_hold(value: str | None, hold: bool, note: str) -> None:
    found = said({} if value is None else {names.ANNOTATION_HOLD: value})
    assert (found.hold, found.hold_note) == (hold, note)


def test_an_approval_is_read_with_its_expiry() -> None:
    assert said({names.ANNOTATION_APPROVE: "abc123@1970-01-01T00:00:09Z"}).approval == Approval("abc123", 9.0)
    assert said({}).approval is None


def test_an_approval_that_cant_be_read_approves_nothing_and_is_named() -> None:
    found = said({names.ANNOTATION_APPROVE: "go ahead", names.ANNOTATION_HOLD: "why not"})
    assert (found.approval, found.hold_note) == (None, "why not")
    assert found.problem.startswith("annotation gearshift.dev/approve: 'go ahead' is not PLAN or PLAN@TIME")
