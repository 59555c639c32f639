# SPDX-License-Identifier: Apache-2.0
"""Whatever a user writes: what is asked reads one namespace only, or nothing is asked."""

import promql_parser
from hypothesis import given
from hypothesis import strategies as st

from gearshift.operator.promql import QueryError, pinned
from gearshift.policy.queries import Scope

SCOPE = Scope("prod", ("chat-0",), 30)
LABELS = st.sampled_from(["pod", "b", "namespace", '"namespace"'])
OPERATORS = st.sampled_from(["=", "=", "!=", "=~", "!~"])
VALUES = st.text(st.sampled_from("ab\"\\{}$|,'` \n"), max_size=5) | st.sampled_from(
    ["prod", "prod", "other", ".*", "$service"]
)


def literal(text: str) -> str:
    """A string of PromQL."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{quoted}"'


MATCHERS = st.lists(st.builds(lambda a, b, c: f"{a}{b}{literal(c)}", LABELS, OPERATORS, VALUES), max_size=3)
SELECTORS = st.builds(
    lambda name, matchers, offset: f"{name}{{{','.join(matchers)}}}{offset}",
    st.sampled_from(["a", "b:c", "namespace"]),
    MATCHERS,
    st.sampled_from(["", "", " offset 1m"]),
)


def larger(smaller: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of smaller ones."""
    return st.one_of(
        st.builds(lambda a, b: f"({a}) {b}", smaller, st.sampled_from(["+ 1", "> bool 2", "or vector(0)"])),
        st.builds(
            lambda a, b, op: f"({a}) {op} ({b})", smaller, smaller, st.sampled_from(["+", "and on ()", "unless"])
        ),
        st.builds(lambda a, b: f"topk(scalar({a}), {b})", smaller, smaller),
        st.builds(lambda a: f"max_over_time(({a})[10m:30s])", smaller),
        st.builds(
            lambda a, b: f"label_replace({a}, {literal(b)}, {literal(b)}, {literal(b)}, {literal(b)})", smaller, VALUES
        ),
    )


EXPRESSIONS = st.recursive(SELECTORS, larger, max_leaves=6)


def selectors(text: str) -> list[promql_parser.VectorSelector]:
    """Every selector of a query."""
    found: list[promql_parser.VectorSelector] = []

    def look(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(promql_parser.parse(text), look)
    return found


@given(EXPRESSIONS)
def test_no_selector_reads_another_namespace(query: str) -> None:
    """Each selector has one matcher on the namespace: the equality with the service's own."""
    try:
        sent = pinned(query, "chat", SCOPE)
    except QueryError:
        return
    found = selectors(sent)
    assert len(found) >= len(selectors(query)) > 0
    for selector in found:
        pins = [str(matcher) for matcher in selector.matchers.matchers if matcher.name == "namespace"]
        assert pins == ['namespace="prod"']


@given(st.text(max_size=60) | st.text(st.sampled_from("ab(){}[]\"'`\\ +-*/%^=~!<>@:,.$0159msh#\n"), max_size=60))
def test_any_text_is_asked_pinned_or_refused(query: str) -> None:
    """Nothing else comes of it: no other exception, and no crash of the parser."""
    try:
        sent = pinned(query, "chat", SCOPE)
    except QueryError:
        return
    assert all('namespace="prod"' in selector.prettify() for selector in selectors(sent))
