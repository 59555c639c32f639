# SPDX-License-Identifier: Apache-2.0
"""Specs that can't be served are refused in words that name field and value."""

from typing import Any

import pytest
from pydantic import ValidationError

from gearshift.api.v1alpha1 import InferenceService
from gearshift.operator.validity import name_problem, service_problem, spec_problem
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


def service(*queries: str, name: str = "chat", window: str = "30s") -> InferenceService:
    """A service of namespace prod with a query for each of some signals."""
    entries = [
        {"signal": signal, "query": query} for signal, query in zip(("Waiting", "Running"), queries, strict=False)
    ]
    meta = {"name": name, "namespace": "prod", "uid": "uid-1"}
    body = {"metadata": meta, "spec": spec(policy={"queries": entries, "window": window}).dump()}
    return InferenceService.model_validate(body)


REFUSED = (
    "spec.policy.queries[0].query: matcher namespace=\"x\" is not allowed: only namespace 'prod' can be read, got "
    "'a{namespace=\"x\"}'"
)


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ((), None),
        (('sum(a{pod=~"$pods"})', "sum(rate(b[$window]))"), None),
        (("sum(a)", "sum("), "spec.policy.queries[1].query: is not PromQL: unclosed left parenthesis, got 'sum('"),
        (
            ('a{namespace="x"}',),
            REFUSED,
        ),
    ],
)
def test_queries_are_judged_before_the_service_is_served(queries: tuple[str, ...], words: str | None) -> None:
    assert service_problem(service(*queries)) == words


def test_the_window_counts_for_how_far_back_a_query_reads() -> None:
    query = "sum(rate(a[$window] offset $window))"
    assert service_problem(service(query, window="30m")) is None
    assert "reaches 7200s back" in str(service_problem(service(query, window="1h")))


def test_a_service_with_a_bad_name_is_refused_too() -> None:
    assert "'1a' can't name" in str(service_problem(service(name="1a")))
