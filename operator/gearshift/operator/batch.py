# SPDX-License-Identifier: Apache-2.0
"""Several instant queries as one, so that a service costs Prometheus one request and not one a signal and role."""

from collections.abc import Sequence
from typing import Any, Final

_LABEL: Final = "gearshift_query"  # number of the query that a series answers


def joined(queries: Sequence[str]) -> str:
    """A query whose answer holds those of some queries about vectors, each of its series labelled."""
    return " or ".join(
        f'label_replace(({query}), "{_LABEL}", "{number}", "", "")' for number, query in enumerate(queries)
    )


def parted(body: Any, count: int) -> list[Any] | None:
    """Answers to ``count`` queries from the one to what they were joined to; None when it is no such answer."""
    try:
        if body["status"] != "success" or body["data"]["resultType"] != "vector":
            return None
        found: list[list[Any]] = [[] for _ in range(count)]
        for entry in body["data"]["result"]:
            found[int(entry["metric"][_LABEL])].append(entry)
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    return [{"status": "success", "data": {"resultType": "vector", "result": entries}} for entries in found]
