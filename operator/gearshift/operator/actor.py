# SPDX-License-Identifier: Apache-2.0
"""Carries out a plan: pods are made and deleted, transitions ordered, and what acted is told by one event."""

import logging
from typing import Any

from gearshift.api import reasons
from gearshift.api.v1alpha1.status import TransitionRecord
from gearshift.api.wire import TransitionStatus
from gearshift.operator.budgets import Budgets
from gearshift.operator.events import Events
from gearshift.operator.gather import Gathered
from gearshift.operator.manifests.meta import Owner
from gearshift.operator.orders import Orders
from gearshift.operator.pods import Pods
from gearshift.policy.conditionview import Trouble
from gearshift.policy.history import record
from gearshift.policy.plan import CreatePod, DeletePod, Plan, Transit
from gearshift.policy.statusview import describe

Json = dict[str, Any]
_log = logging.getLogger(__name__)


class Actor:
    """Acts for one service."""

    def __init__(self, pods: Pods, orders: Orders, budgets: Budgets, events: Events) -> None:
        self._pods = pods
        self._orders = orders
        self._budgets = budgets
        self._events = events
        self.refused = False  # a sidecar refused the last order
        self.ordered: TransitionRecord | None = None  # the last order, when a sidecar took it

    async def act(self, meta: Json, owner: Owner, plan: Plan, gathered: Gathered, at: float) -> Trouble | None:
        """Carry out the plan in order; what kept it from being carried out, for as far as a human can remove it.

        Raises:
            KubeError: the API server can't be asked; what was done before stays done.
        """
        self.refused, self.ordered = False, None
        creations = [action for action in plan.actions if isinstance(action, CreatePod)]
        deletions = [action for action in plan.actions if isinstance(action, DeletePod)]
        for transit in (action for action in plan.actions if isinstance(action, Transit)):
            await self._order(meta, plan, transit, gathered, at)
        for deletion in deletions:
            await self._pods.delete(owner, deletion)
        made, trouble = await self._create(owner, creations)
        if deletions:
            await self._tell(meta, reasons.POD_DELETED, "Delete", plan, at)
        elif made:
            await self._tell(meta, reasons.POD_CREATED, "Create", plan, at)
        return trouble

    async def _create(self, owner: Owner, creations: list[CreatePod]) -> tuple[int, Trouble | None]:
        """How many pods were made, and why not all of them."""
        for made, creation in enumerate(creations):
            async with self._budgets.lock(owner.namespace):
                budget = self._budgets.of(owner.namespace, owner.uid)
                held = (self._pods.count(owner.uid) + 1) * owner.spec.pod.accelerators
                if budget is not None and budget.others + held > budget.limit:
                    return made, None  # another service was quicker: the next decision says so
                trouble = await self._pods.create(owner, creation)
            if trouble is not None:
                return made, trouble
        return len(creations), None

    async def _order(self, meta: Json, plan: Plan, action: Transit, gathered: Gathered, at: float) -> None:
        answer = await self._orders.order(plan, action, gathered)
        if isinstance(answer, TransitionStatus):
            self.ordered = record(action.pod, answer) if answer.finished_at is None else None
            return
        self.refused = True
        _log.warning("%s/%s: %s", meta["namespace"], meta["name"], answer)
        await self._events.post(meta, reasons.TRANSITION_REFUSED, "Transition", answer, at, warning=True)

    async def _tell(self, meta: Json, reason: str, action: str, plan: Plan, at: float) -> None:
        await self._events.post(meta, reason, action, f"{describe(plan)}: {plan.reason} (plan {plan.id})", at)
