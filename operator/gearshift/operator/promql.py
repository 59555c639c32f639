# SPDX-License-Identifier: Apache-2.0
"""PromQL that users give: parsed, bounded and pinned to one namespace before Prometheus is asked.

The operator may read all of Prometheus, a user of one namespace may not: what a query can reach is decided on its
syntax tree, every kind of node of which is known here, and the text that is sent is made from that tree. The tree is
bounded before anything else is done with it, since the parser's own walks take time that grows with the square of its
depth.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import promql_parser as promql

from gearshift.policy.queries import Scope, quoted

REACH_SECONDS: Final = 3600.0
"""How far back a series may be read: ranges and offsets on the way to it, those of subqueries too."""
STEPS: Final = 720
"""How often an expression in subqueries may be evaluated: an hour in steps of 5 s."""
SELECTORS: Final = 16
NODES: Final = 128
DEPTH: Final = 24
UNBOUND: Final = frozenset({"info"})
"""Functions that read series which no selector names."""
PLACEHOLDERS: Final = "$window, $pods, $service and $namespace"

_NAMESPACE: Final = "namespace"
_WINDOW: Final = re.compile(r"\$window\b")
_PLACEHOLDER: Final = re.compile(r"\$([A-Za-z_]\w*)")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class QueryError(ValueError):
    """A query that is not asked; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Who asks: the service, and the pods that the query is about."""

    service: str
    scope: Scope


def pinned(query: str, reader: Reader) -> str:
    """The text to send in the place of ``query``: placeholders filled in, each selector pinned to the namespace.

    An answer has the time of the question, however old the samples are that it comes from, and Prometheus looks for
    them in the last five minutes. A selector without a range therefore finds only series that have a sample within
    that of own queries.

    Raises:
        QueryError: it is no PromQL, does not answer with numbers, reads what it must not, or costs too much.
    """
    tree = _parsed(_WINDOW.sub(reader.scope.range, query))
    _Judge().judge(tree, _Place())
    if _kind(tree) not in ("vector", "scalar"):
        raise QueryError(f"its answer is a {_kind(tree)}, not a number")
    rewriter = _Rewriter(reader)
    text = _one_line(promql.transform(tree, rewriter.enter, rewriter.leave).prettify())
    _verify(text, reader.scope.namespace)
    return text


def _parsed(text: str) -> promql.Expr:
    try:
        return promql.parse(text)
    except ValueError as problem:
        raise QueryError(f"is not PromQL: {problem}") from problem
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":  # the parser's own defect, of a class that it does not export
            raise
        raise QueryError(f"is not PromQL: {problem}") from None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the tree: nodes above, seconds back, evaluations for one of the whole."""

    depth: int = 0
    reach: float = 0.0
    steps: float = 1.0

    def back(self, offset: timedelta | None, span: timedelta | None = None) -> "_Place":
        """Further back in time."""
        if offset is not None and offset < timedelta():
            raise QueryError(f"offset {_seconds(offset)} reads the future")
        more = sum(part.total_seconds() for part in (offset, span) if part is not None)
        reach = self.reach + more
        if reach > REACH_SECONDS:
            raise QueryError(f"reaches {reach:g}s back, by ranges and offsets together; {REACH_SECONDS:g}s are allowed")
        return replace(self, reach=reach)

    def repeated(self, span: timedelta, step: timedelta | None) -> "_Place":
        """Below a subquery."""
        if step is None:
            raise QueryError(f"a subquery names its step, as in [{_seconds(span)}:15s]")
        steps = self.steps * max(span / step, 1.0)
        if steps > STEPS:
            subquery = f"a subquery of {_seconds(span)} in steps of {_seconds(step)}"
            raise QueryError(f"{subquery} is evaluated {steps:.0f} times; {STEPS} are allowed")
        return replace(self, steps=steps)


@dataclass(slots=True)
class _Judge:
    """Looks at each node of a tree once, from the top, and refuses what must not be asked."""

    nodes: int = field(default=0)
    selectors: int = field(default=0)

    def judge(self, tree: promql.Expr, place: _Place) -> None:
        """Raises QueryError."""
        self._visit(tree, place)
        if not self.selectors:
            raise QueryError("reads no series")

    def _visit(self, node: promql.Expr, place: _Place) -> None:
        self.nodes += 1
        if self.nodes > NODES or place.depth > DEPTH:
            raise QueryError(f"has more than {NODES} parts, or {DEPTH} within one another")
        below = self._below(node, place)
        for child in _children(node):
            self._visit(child, replace(below, depth=place.depth + 1))

    def _below(self, node: promql.Expr, place: _Place) -> _Place:
        """Checks one node; where its children are."""
        match node:
            case promql.VectorSelector():
                return self._selector(node, place)
            case promql.MatrixSelector():
                return place.back(None, node.range)
            case promql.SubqueryExpr():
                _refuse_at(node.at)
                span = node.range or timedelta()
                return place.back(node.offset, span).repeated(span, node.step)
            case promql.Call() if node.func.name in UNBOUND or node.func.experimental:
                raise QueryError(f"function {node.func.name} is not allowed")
            case _:
                return place

    def _selector(self, node: promql.VectorSelector, place: _Place) -> _Place:
        self.selectors += 1
        if self.selectors > SELECTORS:
            raise QueryError(f"reads series by more than {SELECTORS} selectors")
        _refuse_at(node.at)
        if node.matchers.or_matchers:
            raise QueryError("is not PromQL: matchers with or")
        if node.name is None and not any(_names(matcher) for matcher in node.matchers.matchers):
            raise QueryError(f"selector {node.prettify()} names no metric")
        return place.back(node.offset)


def _refuse_at(modifier: promql.AtModifier | None) -> None:
    if modifier is not None:
        raise QueryError("modifier @ is not allowed: a decision is about now")


def _names(matcher: promql.Matcher) -> bool:
    return matcher.name == "__name__" and matcher.op == promql.MatchOp.Equal and bool(matcher.value)


def _children(node: promql.Expr) -> Iterator[promql.Expr]:
    match node:
        case promql.AggregateExpr():
            yield from (part for part in (node.param, node.expr) if part is not None)
        case promql.UnaryExpr() | promql.ParenExpr() | promql.SubqueryExpr():
            yield node.expr
        case promql.BinaryExpr():
            yield from (node.lhs, node.rhs)
        case promql.MatrixSelector():
            yield node.vector_selector
        case promql.Call():
            yield from node.args
        case promql.VectorSelector() | promql.NumberLiteral() | promql.StringLiteral():
            return
        case _:
            raise QueryError(f"{type(node).__name__} is not allowed")


def _kind(node: promql.Expr) -> str:
    """What an expression answers with: vector, scalar, matrix or string."""
    kind = "vector"
    match node:
        case promql.NumberLiteral():
            kind = "scalar"
        case promql.StringLiteral():
            kind = "string"
        case promql.MatrixSelector() | promql.SubqueryExpr():
            kind = "matrix"
        case promql.UnaryExpr() | promql.ParenExpr():
            kind = _kind(node.expr)
        case promql.BinaryExpr() if _kind(node.lhs) == _kind(node.rhs) == "scalar":
            kind = "scalar"
        case promql.Call() if node.func.return_type == promql.ValueType.Scalar:
            kind = "scalar"
    return kind


@dataclass(slots=True)
class _Rewriter:
    """Puts another selector in the place of each; all other nodes stay as they are."""

    reader: Reader
    plain: bool = field(default=False)  # the next selector has a range, or is asked for the age of its samples

    def enter(self, node: promql.Expr) -> None:
        """On the way down; a node is followed by those in it."""
        match node:
            case promql.MatrixSelector():
                self.plain = True
            case promql.Call() if node.func.name == "timestamp" and isinstance(node.args[0], promql.VectorSelector):
                self.plain = True

    def leave(self, node: promql.Expr) -> promql.Expr | None:
        """On the way up."""
        if not isinstance(node, promql.VectorSelector):
            return None
        plain, self.plain = self.plain, False
        selector = _selector(node, self.reader)
        offset = f" offset {_seconds(node.offset)}" if node.offset else ""
        if plain:
            return _parsed(selector + offset)
        return _parsed(f"({selector}{offset} and last_over_time({selector}[{self.reader.scope.range}]{offset}))")


def _selector(node: promql.VectorSelector, reader: Reader) -> str:
    """The pinned selector, without its offset."""
    own = reader.scope.namespace
    matchers = [_matcher(matcher, reader) for matcher in node.matchers.matchers if not _pins(matcher, own)]
    matchers.append(f'{_NAMESPACE}="{quoted(own)}"')
    return f"{node.name or ''}{{{','.join(matchers)}}}"


def _pins(matcher: promql.Matcher, namespace: str) -> bool:
    """The matcher is the one that every selector gets."""
    if matcher.name != _NAMESPACE:
        return False
    if matcher.op == promql.MatchOp.Equal and matcher.value in (namespace, "$namespace"):
        return True
    raise QueryError(f"matcher {matcher!s} is not allowed: only namespace {namespace!r} can be read")


def _matcher(matcher: promql.Matcher, reader: Reader) -> str:
    if not _LABEL.fullmatch(matcher.name):
        raise QueryError(f"{matcher.name!r} is no name of a label")
    operators = ((promql.MatchOp.Equal, "="), (promql.MatchOp.NotEqual, "!="), (promql.MatchOp.Re, "=~"))
    operator = next((text for op, text in operators if op == matcher.op), "!~")
    value = _PLACEHOLDER.sub(lambda found: _filled(found[1], operator, reader), matcher.value)
    return f'{matcher.name}{operator}"{quoted(value)}"'


def _filled(name: str, operator: str, reader: Reader) -> str:
    """What stands in the place of a placeholder in the value of a matcher."""
    match name:
        case "namespace":
            return reader.scope.namespace
        case "service":
            return reader.service
        case "pods" if operator in ("=~", "!~"):
            return f"({reader.scope.pod_pattern})"
        case "pods":
            raise QueryError(f"$pods is a regular expression: =~ or !~ before it, not {operator}")
        case _:
            raise QueryError(f"placeholder ${name} is not known; there are {PLACEHOLDERS}")


def _verify(text: str, namespace: str) -> None:
    """The text that leaves is read once more: no selector in it may lack its pin, whatever made the text."""

    def look(node: promql.Expr) -> None:
        if isinstance(node, promql.VectorSelector):
            pins = [each for each in node.matchers.matchers if each.name == _NAMESPACE]
            if [each.value for each in pins if each.op == promql.MatchOp.Equal] != [namespace] or len(pins) != 1:
                raise QueryError(f"could not be pinned to namespace {namespace!r}: {text}")

    promql.walk(_parsed(text), look)


def _seconds(span: timedelta) -> str:
    """A duration in the words of PromQL."""
    milliseconds = round(span / timedelta(milliseconds=1))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def _one_line(text: str) -> str:
    """Without the line breaks of the printer; those in strings are escaped."""
    joined = ""
    for line in text.split("\n"):
        glue = "" if not joined or joined.endswith("(") or line.strip().startswith(")") else " "
        joined += glue + line.strip()
    return joined
