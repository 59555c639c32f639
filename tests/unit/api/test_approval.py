# SPDX-License-Identifier: Apache-2.0
"""The value of the approving annotation, from both sides."""

import pytest

from gearshift.api.approval import Approval


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0123456789ab", Approval("0123456789ab")),
        (" 0123456789ab ", Approval("0123456789ab")),
        ("0123456789ab@1970-01-01T00:01:00Z", Approval("0123456789ab", 60.0)),
        ("0123456789ab@1970-01-01T01:01:00+01:00", Approval("0123456789ab", 60.0)),
        ("0123456789ab@1970-01-01T00:01:00", Approval("0123456789ab", 60.0)),
    ],
)
def test_values_that_are_read(value: str, expected: Approval) -> None:
    assert Approval.parse(value) == expected


@pytest.mark.parametrize("value", ["", "@", "yes please", "0123456789ab@", "0123456789ab@soon", "a@b@c"])
def test_values_that_are_refused_are_named(value: str) -> None:
    with pytest.raises(ValueError, match="is not PLAN or PLAN@TIME") as problem:
        Approval.parse(value)
    assert repr(value) in str(problem.value)


def test_what_is_written_is_read_back() -> None:
    for approval in (Approval("0123456789ab"), Approval("0123456789ab", 1_700_000_000.0)):
        assert Approval.parse(str(approval)) == approval
