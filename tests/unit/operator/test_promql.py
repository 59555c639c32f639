# SPDX-License-Identifier: Apache-2.0
"""Queries of users: what is asked in their place, and what is not asked at all."""

import pytest

from gearshift.operator.promql import QueryError, pinned
from gearshift.operator.promql.limits import NODES, SELECTORS
from gearshift.policy.queries import Scope


def fresh(selector: str, offset: str = "") -> str:
    """What stands in the place of a selector without a range."""
    return f"({selector}{offset} and last_over_time({selector}[30s]{offset}))"


A, B = fresh('a{namespace="prod"}'), fresh('b{namespace="prod"}')
PODS = '"(chat-0|chat-1)"'


def asked(query: str, namespace: str = "prod") -> str:
    """What is sent for a service with two pods and a window of 30 s."""
    return pinned(query, "chat", Scope(namespace, ("chat-1", "chat-0"), 30))


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("sum(a)", f"sum({A})"),
        ('a{b="c", d!="e", f=~"g", h!~"i"}', fresh('a{b="c",d!="e",f=~"g",h!~"i",namespace="prod"}')),
        ('{__name__="a"}', fresh('{__name__="a",namespace="prod"}')),
        ('{"a"}', fresh('{__name__="a",namespace="prod"}')),
        ('a{namespace="prod"}', A),
        ('a{namespace="$namespace"}', A),
        ("a offset 5m", fresh('a{namespace="prod"}', " offset 5m")),
        ("sum(rate(a[$window] offset 5m))", 'sum(rate(a{namespace="prod"}[30s] offset 5m))'),
        ("rate(a[1m]) / a", f'rate(a{{namespace="prod"}}[1m]) / {A}'),
        ("time() - timestamp(a)", 'time() - timestamp(a{namespace="prod"})'),
        ("timestamp(a + b)", f"timestamp({A} + {B})"),
        ('a{pod=~"$pods",service="$service"}', fresh(f'a{{namespace="prod",pod=~{PODS},service="chat"}}')),
        ('a{pod!~"x$|$pods"}', fresh('a{namespace="prod",pod!~"x$|(chat-0|chat-1)"}')),
        ("a / on (x) group_left () b", f"{A} / on (x) group_left () {B}"),
        ("topk(scalar(a), b)", f"topk(scalar({A}), {B})"),
        ("scalar(a) + 1", f"scalar({A}) + 1"),
        ("max_over_time(sum(a)[1h:5s])", f"max_over_time(sum({A})[1h:5s])"),
        ("-(a unless b) # why", f"-({A} unless {B})"),
        ("absent(a) or vector(0)", f"absent({A}) or vector(0)"),
        (r'a{b="\"} or c{",d="\\"}', fresh(r'a{b="\"} or c{",d="\\",namespace="prod"}')),
        (r'label_replace(a, "b", "\"} or c", "d", "(.*)\n")', rf'label_replace({A}, "b", "\"}} or c", "d", "(.*)\n")'),
    ],
)
def test_every_selector_is_pinned_and_fresh_and_placeholders_are_filled(query: str, sent: str) -> None:
    """All else stays as it was."""
    assert asked(query) == sent


def test_an_answer_is_one_line() -> None:
    """A long query is broken by the printer; strings keep their spaces."""
    terms = [f'sum by (pod) (rate(requests_{n}{{path="/a  b",pod=~"$pods"}}[$window]))' for n in range(8)]
    sent = asked(" + ".join(terms))
    assert "\n" not in sent
    assert sent.count('path="/a  b"') == 8


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("sum(", "is not PromQL: "),
        ("", "is not PromQL: no expression"),
        ("a[1e99]", "is not PromQL: cannot convert"),
        ('a{b=~"["}', "is not PromQL: illegal regex"),
        ('a{b="c" or namespace="other"}', "is not PromQL: matchers with or"),
        ('a{namespace="other"}', "matcher namespace=\"other\" is not allowed: only namespace 'prod' can be read"),
        ('a{"namespace"="other"}', 'matcher namespace="other" is not allowed'),
        ('a{namespace=""}', 'matcher namespace="" is not allowed'),
        ('a{namespace!="prod"}', 'matcher namespace!="prod" is not allowed'),
        ('a{namespace=~"prod"}', 'matcher namespace=~"prod" is not allowed'),
        ('a{namespace!~"x"}', 'matcher namespace!~"x" is not allowed'),
        ('a{namespace="prod",namespace=~".*"}', 'matcher namespace=~".*" is not allowed'),
        ('sum(rate(a{namespace="other"}[1m]))', 'matcher namespace="other" is not allowed'),
        ('topk(scalar(a{namespace="other"}), b)', 'matcher namespace="other" is not allowed'),
        ('a and on () b{namespace="other"}', 'matcher namespace="other" is not allowed'),
        ('max_over_time(a{namespace="other"}[5m:15s])', 'matcher namespace="other" is not allowed'),
        ("1 + 1", "reads no series"),
        ("vector(1)", "reads no series"),
        ("time()", "reads no series"),
        ('{pod="a"}', 'selector {pod="a"} names no metric'),
        ('{__name__=~".+"}', 'selector {__name__=~".+"} names no metric'),
        ("a[5m]", "its answer is a matrix, not a number"),
        ("sum(a)[5m:15s]", "its answer is a matrix, not a number"),
        ("a @ 5", "modifier @ is not allowed"),
        ("rate(a[5m] @ start())", "modifier @ is not allowed"),
        ("max_over_time(a[5m:15s] @ end())", "modifier @ is not allowed"),
        ("rate(a[61m])", "reaches 3660s back, by ranges and offsets together; 3600s are allowed"),
        ("a offset 2h", "reaches 7200s back"),
        ("a offset -5m", "offset -300s reads the future"),
        ("rate(a[50m] offset 11m)", "reaches 3660s back"),
        ("max_over_time(rate(a[40m])[21m:5m])", "reaches 3660s back"),
        ("max_over_time(a[30m:1m] offset 31m)", "reaches 3660s back"),
        ("max_over_time(a[10m:])", "a subquery names its step, as in [600s:15s]"),
        ("max_over_time(a[1h:1s])", "a subquery of 3600s in steps of 1s is evaluated 3600 times; 720 are allowed"),
        ("max_over_time(max_over_time(a[9m:9s])[9m:9s])", "a subquery of 540s in steps of 9s is evaluated 3600 times"),
        ("info(a)", "function info is not allowed"),
        ('a{"b.c"="d"}', "'b.c' is no name of a label"),
        ('a{pod="$pods"}', "$pods is a regular expression: =~ or !~ before it, not ="),
        ('a{pod=~"$pod"}', "placeholder $pod is not known; there are $window, $pods, $service and $namespace"),
        ('label_replace(a, "b", "$pods", "c", ".*")', "$pods stands for pods in matchers only"),
        ("rate(a[$__rate_interval])", "is not PromQL: "),
        ("+".join("a" * (SELECTORS + 1)), f"reads series by more than {SELECTORS} selectors"),
        ("-" * 900 + "a", f"has more than {NODES} parts, or "),
        ("(" * 400 + "a" + ")" * 400, f"has more than {NODES} parts, or "),
        ("sum(a) " + "+1" * NODES, f"has more than {NODES} parts, or "),
    ],
)
def test_what_is_not_asked(query: str, why: str) -> None:
    """In words that say what is wrong."""
    with pytest.raises(QueryError) as refusal:
        asked(query)
    assert str(refusal.value).startswith(why)


def test_names_of_pods_are_taken_literally() -> None:
    """As those of own queries."""
    sent = pinned('rate(a{pod=~"$pods-x"}[1m])', "chat", Scope("prod", ('x.y"} or c{', "b|.*"), 30))
    assert sent == r'rate(a{namespace="prod",pod=~"(b\\|\\.\\*|x\\.y\"\\} or c\\{)-x"}[1m])'


def test_a_namespace_is_taken_literally() -> None:
    """It comes from the API server, which is no reason to trust it as PromQL."""
    assert asked("a", 'b"} or c{d="') == fresh(r'a{namespace="b\"} or c{d=\""}')
