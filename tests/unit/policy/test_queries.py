# SPDX-License-Identifier: Apache-2.0
"""Text of the queries; tests/functional/prometheus asks a real Prometheus what they answer."""

import pytest

from gearshift.policy.queries import Scope, queries
from gearshift.policy.snapshot import Signal


def scope(*pods: str, window: float = 30, scrape: float = 5) -> Scope:
    """A scope in namespace prod."""
    return Scope("prod", pods, window, scrape)


def test_every_signal_has_a_query_for_the_named_pods_only() -> None:
    """Pinned to namespace and pods, whatever the order of the pods."""
    asked = queries(scope("chat-1", "chat-0"))
    assert set(asked) == set(Signal)
    assert all('{namespace="prod",pod=~"chat-0|chat-1"' in query for query in asked.values())
    assert asked == queries(scope("chat-0", "chat-1"))


@pytest.mark.parametrize(
    ("window", "scrape", "expected"), [(30, 5, "30s"), (5, 5, "20s"), (5, 1, "5s"), (5.5, 1, "6s"), (0.5, 0.1, "1s")]
)
def test_the_range_is_the_window_but_holds_enough_scrapes(window: float, scrape: float, expected: str) -> None:
    """Whole seconds, rounded up."""
    assert scope("a", window=window, scrape=scrape).range == expected


@pytest.mark.parametrize(("count", "required"), [(1, 1), (2, 2), (4, 4), (5, 4), (10, 8), (11, 9)])
def test_most_pods_must_report(count: int, required: int) -> None:
    """Four of five; all of fewer."""
    asked = scope(*(f"chat-{ordinal}" for ordinal in range(count)))
    assert asked.required == required
    assert all(query.endswith(f">= {required})") for query in queries(asked).values())


def test_names_are_taken_literally() -> None:
    """Neither a regular expression nor the end of a string can be smuggled in."""
    evil = Scope('a"} or vector(1) #', ['x.y|.*"\\', "a\nb"], 30)
    assert evil.matchers == r'namespace="a\"} or vector(1) #",pod=~"a\nb|x\\.y\\|\\.\\*\"\\\\"'


def test_no_pods_no_query() -> None:
    """An empty expression would match every series without a pod."""
    with pytest.raises(ValueError, match="no pods to query in namespace 'prod'"):
        queries(scope())


def test_no_name_gets_out_of_its_quotes() -> None:
    """Names come from the API server, which is no reason to trust them as PromQL."""
    hostile = Scope('a"} or vector(1) #\n', ('b|.*"}\\',), 30)
    assert hostile.matchers == r'namespace="a\"} or vector(1) #\n",pod=~"b\\|\\.\\*\"\\}\\\\"'
