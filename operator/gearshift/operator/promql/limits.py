# SPDX-License-Identifier: Apache-2.0
"""What a query may reach and cost.

Every kind of node that a syntax tree may hold is known here; any other is refused. The tree is bounded before anything
else is done with it, since the parser's own walks take time that grows with the square of its depth.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import promql_parser as promql

from gearshift.operator.promql.parsing import QueryError, seconds

REACH_SECONDS: Final = 3600.0
"""How far back a series may be read: ranges and offsets on the way to it, those of subqueries too."""
STEPS: Final = 720
"""How often an expression in subqueries may be evaluated: an hour in steps of 5 s."""
SELECTORS: Final = 16
NODES: Final = 128
DEPTH: Final = 24
UNBOUND: Final = frozenset({"info"})
"""Functions that read series which no selector names."""
PODS: Final = re.compile(r"\$pods\b")


def judge(tree: promql.Expr) -> None:
    """Let a query pass that may be asked.

    Raises:
        QueryError: it reads no series, reads too far back, costs too much or does not answer with numbers.
    """
    judged = _Judge()
    judged.visit(tree, _Place())
    if not judged.selectors:
        raise QueryError("reads no series")
    if _kind(tree) not in ("vector", "scalar"):
        raise QueryError(f"its answer is a {_kind(tree)}, not a number")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the tree: nodes above, seconds back, evaluations for one of the whole."""

    depth: int = 0
    reach: float = 0.0
    steps: float = 1.0

    def back(self, offset: timedelta | None, span: timedelta | None = None) -> "_Place":
        """Further back in time."""
        if offset is not None and offset < timedelta():
            raise QueryError(f"offset {seconds(offset)} reads the future")
        more = sum(part.total_seconds() for part in (offset, span) if part is not None)
        reach = self.reach + more
        if reach > REACH_SECONDS:
            raise QueryError(f"reaches {reach:g}s back, by ranges and offsets together; {REACH_SECONDS:g}s are allowed")
        return replace(self, reach=reach)

    def repeated(self, span: timedelta, step: timedelta | None) -> "_Place":
        """Below a subquery."""
        if step is None:
            raise QueryError(f"a subquery names its step, as in [{seconds(span)}:15s]")
        steps = self.steps * max(span / step, 1.0)
        if steps > STEPS:
            subquery = f"a subquery of {seconds(span)} in steps of {seconds(step)}"
            raise QueryError(f"{subquery} is evaluated {steps:.0f} times; {STEPS} are allowed")
        return replace(self, steps=steps)


@dataclass(slots=True)
class _Judge:
    """Looks at each node of a tree once, from the top, and refuses what must not be asked."""

    nodes: int = field(default=0)
    selectors: int = field(default=0)

    def visit(self, node: promql.Expr, place: _Place) -> None:
        """One node and those in it; raises QueryError."""
        self.nodes += 1
        if self.nodes > NODES or place.depth > DEPTH:
            raise QueryError(f"has more than {NODES} parts, or {DEPTH} within one another")
        below = self._below(node, place)
        for child in _children(node):
            self.visit(child, replace(below, depth=place.depth + 1))

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
            case promql.StringLiteral() if PODS.search(node.val):
                raise QueryError("$pods stands for pods in matchers only")
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
