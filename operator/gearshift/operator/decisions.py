# SPDX-License-Identifier: Apache-2.0
"""Every change of a decision is one log line and one increment of a counter; a restart repeats none of them."""

import logging

from gearshift.api.v1alpha1.status import Decision
from gearshift.operator.metrics import Metrics
from gearshift.policy.plan import Plan
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.statusview import describe
from gearshift.policy.targets import total_target

_log = logging.getLogger(__name__)


class Decisions:
    """The decisions of one service."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._last: tuple[str, str, str] | None = None

    def tell(self, snapshot: Snapshot, plan: Plan, earlier: Decision | None) -> None:
        """Tell a plan that is not as the last one. ``earlier`` is what status knew before it."""
        decided = (plan.id, describe(plan), plan.hold.reason if plan.hold else plan.reason)
        if self._last is None and earlier is not None:
            self._last = (earlier.plan, earlier.action, earlier.reason)
        if decided != self._last:
            self._last = decided
            kind = type(plan.actions[0]).__name__ if plan.actions else "Hold"
            self._metrics.decisions.labels(snapshot.namespace, snapshot.name, kind, decided[2]).inc()
            _log.info("%s/%s: plan %s: %s (%s) %s", snapshot.namespace, snapshot.name, *decided, plan.message or "-")
        desired = total_target(snapshot.spec) if plan.pods is None else plan.pods
        self._metrics.desired.labels(snapshot.namespace, snapshot.name).set(desired)
