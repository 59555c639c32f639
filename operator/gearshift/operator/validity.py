# SPDX-License-Identifier: Apache-2.0
"""Why an InferenceService that the API server let in can't be served, in words that name field and value."""

import re
from functools import lru_cache
from typing import Final

from pydantic import ValidationError

from gearshift.api.v1alpha1 import InferenceService
from gearshift.operator.promql import QueryError, Reader, template
from gearshift.policy.queries import Scope

_NAME: Final = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
_LONGEST: Final = 50  # names of children add up to twelve characters and may have 63


def service_problem(service: InferenceService) -> str | None:
    """Why a service whose spec could be read can't be served; None when it can."""
    return name_problem(service.metadata.name) or _query_problem(service)


def name_problem(name: str) -> str | None:
    """Why children could not be named after a service of this name; None when they can."""
    if len(name) > _LONGEST:
        return f"metadata.name: {name!r} has {len(name)} characters; with those of its children {_LONGEST} fit"
    if not _NAME.match(name):
        return f"metadata.name: {name!r} can't name a Service: a lower-case letter, then letters, digits and -"
    return None


def _query_problem(service: InferenceService) -> str | None:
    meta, policy = service.metadata, service.spec.policy
    for index, entry in enumerate(policy.queries):
        reader = Reader(meta.name, meta.namespace, Scope(meta.namespace, (), policy.window.seconds).range)
        problem = query_problem(entry.query, reader)
        if problem is not None:
            return f"spec.policy.queries[{index}].query: {problem}, got {entry.query!r:.80}"
    return None


@lru_cache(maxsize=1024)
def query_problem(query: str, reader: Reader) -> str | None:
    """Why a query of the user is not asked; None when it is."""
    try:
        template(query, reader)
    except QueryError as problem:
        return str(problem)
    return None


def spec_problem(problem: ValidationError) -> str:
    """The first errors of a spec, each with its field and value."""
    errors = problem.errors(include_url=False, include_context=False)
    words = [f"{_path(error['loc'])}: {_words(error['msg'])}{_value(error)}" for error in errors[:3]]
    more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    return "; ".join(words) + more


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "object"


def _words(message: str) -> str:
    return message.removeprefix("Value error, ")


def _value(error: object) -> str:
    """The bad value, unless it is a whole object, whose rule names what is wrong in it."""
    value = error["input"] if isinstance(error, dict) else None
    return f", got {value!r:.80}" if isinstance(value, str | int | float | bool) else ""
