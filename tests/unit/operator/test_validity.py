# SPDX-License-Identifier: Apache-2.0
"""Specs that can't be served are refused in words that name field and value."""

from typing import Any

import pytest
from pydantic import ValidationError

from gearshift.operator.validity import name_problem, spec_problem
from tests.unit.operator.builders import spec


@pytest.mark.parametrize("name", ["chat", "a", "vllm", "x" * 50, "a-1"])
def test_good_names(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "words"), [("x" * 51, "51 characters"), ("1a", "'1a' can't name"), ("a.b", "'a.b'"), ("A", "'A'")]
)
def test_bad_names(name: str, words: str) -> None:
    assert words in str(name_problem(name))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"replicas": 10**12}, "replicas: Input should be less than or equal to 1000, got 1000000000000"),
        ({"pod": {"accelerators": 7}}, "pod.accelerators: Input should be 1, 2, 4 or 8, got 7"),
        (
            {"roles": [{"name": "Unified", "replicas": 3, "max": 2}]},
            "roles[0]: role Unified: replicas 3 is above max 2",
        ),
        ({"unknown": 1}, "unknown: Extra inputs are not permitted"),
    ],
)
def test_words(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        spec(**fields)
    assert words in spec_problem(caught.value)
