# SPDX-License-Identifier: Apache-2.0
"""A status write that is refused: a service that lives is never lost over it."""

import asyncio
from typing import Any, cast

import pytest

from gearshift.api.v1alpha1 import InferenceServiceStatus
from gearshift.operator.errors import Conflict, KubeError, NotFound
from gearshift.operator.events import Events
from gearshift.operator.index import Index
from gearshift.operator.kube import Kube
from gearshift.operator.metrics import Metrics
from gearshift.operator.reporter import Reporter
from tests.unit.operator.test_index import ignore, live_service

WRITTEN = InferenceServiceStatus(observed_generation=7)


class Refusing:
    """Refuses every write of a status; a look shows ``live``."""

    def __init__(self, problem: KubeError, live: dict[str, Any] | None) -> None:
        self._problem = problem
        self._live = live

    async def apply_status(self, *_: object) -> dict[str, Any]:
        """Refuse."""
        raise self._problem

    async def get(self, *_: object) -> dict[str, Any]:
        """What there is."""
        if self._live is None:
            raise NotFound("GET", "none", 404)
        return self._live


@pytest.mark.parametrize(
    "problem", [Conflict("PATCH", "the object has been modified", 409), NotFound("PATCH", "", 404)]
)
@pytest.mark.parametrize(
    ("live", "left"),
    [(None, []), (live_service("new", 30), ["new"]), (live_service("uid-1", 20), ["uid-1"])],
    ids=["gone", "made-again", "alive"],
)
def test_only_a_service_that_is_gone_is_given_up(
    problem: KubeError, live: dict[str, Any] | None, left: list[str]
) -> None:
    index = Index(ignore)
    index.put_service(live_service("uid-1", 10))
    kube = cast("Kube", Refusing(problem, live))
    reporter = Reporter(kube, index, Events(kube, "me"), Metrics())
    written = reporter.report(live_service("uid-1", 10), InferenceServiceStatus(), WRITTEN, 1000.0)
    assert asyncio.run(written) is False
    assert list(index.services) == left
