# SPDX-License-Identifier: Apache-2.0
"""The text that is sent in the place of a user's query, made from its syntax tree."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import promql_parser as promql

from gearshift.operator.promql.limits import PODS, judge
from gearshift.operator.promql.parsing import QueryError, parsed, seconds
from gearshift.policy.queries import Scope, quoted

PLACEHOLDERS: Final = "$window, $pods, $service and $namespace"

_NAMESPACE: Final = "namespace"
_WINDOW: Final = re.compile(r"\$window\b")
_PLACEHOLDER: Final = re.compile(r"\$([A-Za-z_]\w*)")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Reader:
    """Who asks: a service and its namespace. ``span`` is how old a newest sample may be, as PromQL writes it."""

    service: str
    namespace: str
    span: str


def pinned(query: str, service: str, scope: Scope) -> str:
    """The text to send in the place of ``query`` when the pods of ``scope`` are asked about.

    Raises:
        QueryError: as `template`.
    """
    pods = f"({quoted(scope.pod_pattern)})"
    return PODS.sub(lambda _: pods, template(query, Reader(service, scope.namespace, scope.range)))


@lru_cache(maxsize=1024)
def template(query: str, reader: Reader) -> str:
    """A query with placeholders filled in, but for ``$pods``, and each selector pinned to the namespace.

    An answer has the time of the question, however old the samples are that it comes from, and Prometheus looks for
    them in the last five minutes. A selector without a range therefore finds only series that have a sample within
    ``span``.

    Raises:
        QueryError: it is no PromQL, does not answer with numbers, reads what it must not, or costs too much.
    """
    tree = parsed(_WINDOW.sub(reader.span, query))
    judge(tree)
    rewriter = _Rewriter(reader)
    text = _one_line(promql.transform(tree, rewriter.enter, rewriter.leave).prettify())
    _verify(text, reader.namespace)
    return text


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
        offset = f" offset {seconds(node.offset)}" if node.offset else ""
        if plain:
            return parsed(selector + offset)
        return parsed(f"({selector}{offset} and last_over_time({selector}[{self.reader.span}]{offset}))")


def _selector(node: promql.VectorSelector, reader: Reader) -> str:
    """The pinned selector, without its offset."""
    own = reader.namespace
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
            return reader.namespace
        case "service":
            return reader.service
        case "pods" if operator in ("=~", "!~"):
            return "$pods"  # the names of many pods would cost time in every step from here on
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

    promql.walk(parsed(text), look)


def _one_line(text: str) -> str:
    """Without the line breaks of the printer; those in strings are escaped."""
    joined = ""
    for line in text.split("\n"):
        glue = "" if not joined or joined.endswith("(") or line.strip().startswith(")") else " "
        joined += glue + line.strip()
    return joined
