# SPDX-License-Identifier: Apache-2.0
"""The parser of PromQL, whose every failure is a `QueryError`."""

from datetime import timedelta

import promql_parser as promql


class QueryError(ValueError):
    """A query that is not asked; the message says what is wrong with it."""


def parsed(text: str) -> promql.Expr:
    """The syntax tree of a query.

    Raises:
        QueryError: it is no PromQL.
    """
    try:
        return promql.parse(text)
    except ValueError as problem:
        raise QueryError(f"is not PromQL: {problem}") from problem
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":  # the parser's own defect, of a class that it does not export
            raise
        raise QueryError(f"is not PromQL: {problem}") from None


def seconds(span: timedelta) -> str:
    """A duration in the words of PromQL."""
    milliseconds = round(span / timedelta(milliseconds=1))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"
