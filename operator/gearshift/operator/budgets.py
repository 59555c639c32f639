# SPDX-License-Identifier: Apache-2.0
"""Budgets of accelerators by namespace, as the operator's settings give them, and who holds how many."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from gearshift.operator.index import Index
from gearshift.policy.snapshot import NamespaceBudget

ALL = "*"


class Budgets:
    """``limits`` maps a namespace, or `ALL` for every other one, to accelerators; a namespace without has no limit."""

    def __init__(self, index: Index, limits: Mapping[str, int]) -> None:
        self._index = index
        self._limits = limits
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def of(self, namespace: str, service_uid: str) -> NamespaceBudget | None:
        """What a service of a namespace has to share, or None without a limit. A pod counts until it is gone."""
        limit = self._limits.get(namespace, self._limits.get(ALL))
        if limit is None:
            return None
        others = (
            pod.accelerators
            for uid, pods in self._index.pods.items()
            if uid != service_uid
            for pod in pods.values()
            if pod.namespace == namespace
        )
        return NamespaceBudget(limit, sum(others))

    def lock(self, namespace: str) -> asyncio.Lock:
        """Held from a last look at the budget to the creation of a pod, so that two services never share one place."""
        return self._locks[namespace]
