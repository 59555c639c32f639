# SPDX-License-Identifier: Apache-2.0
"""One service: look, decide, act, report; again when something changed or a while has passed."""

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceService, InferenceServiceSpec, InferenceServiceStatus
from gearshift.api.v1alpha1.status import TransitionRecord
from gearshift.api.vocabulary import Role
from gearshift.operator.actor import Actor
from gearshift.operator.budgets import Budgets
from gearshift.operator.children import Children, router_available
from gearshift.operator.cost import Cost
from gearshift.operator.decisions import Decisions
from gearshift.operator.errors import KubeError, NotFound, NotLeader
from gearshift.operator.events import Events
from gearshift.operator.gather import Gathered, Gatherer
from gearshift.operator.index import Index
from gearshift.operator.kube import Kube
from gearshift.operator.lease import Lease
from gearshift.operator.manifests import meta as manifest_meta
from gearshift.operator.manifests.meta import Installation, Owner
from gearshift.operator.manifests.services import router_url
from gearshift.operator.memo import Memo
from gearshift.operator.metrics import Metrics
from gearshift.operator.orders import Orders
from gearshift.operator.pace import Pace, settling
from gearshift.operator.pods import Pods
from gearshift.operator.reporter import Reporter, status_of
from gearshift.operator.resources import SERVICES_OF_INFERENCE
from gearshift.operator.validity import service_problem, spec_problem
from gearshift.policy.conditionview import Observed, Trouble, graver
from gearshift.policy.decide import decide
from gearshift.policy.fleet import Fleet
from gearshift.policy.loadview import capacity, demand
from gearshift.policy.memory import fold, rebuild
from gearshift.policy.plan import DeletePod, Memory, Plan, Transit
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.statusview import Report, refused, status

Json = dict[str, Any]
_LOOKS_AT_ONCE: Final = 64  # more would wait for each other until sidecars that have answered seem silent
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tools:
    """What every reconciler works with."""

    kube: Kube
    index: Index
    lease: Lease
    orders: Orders
    events: Events
    reporter: Reporter
    metrics: Metrics
    budgets: Budgets
    installation: Installation
    tick_seconds: float
    cost: Cost = field(default_factory=Cost)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LOOKS_AT_ONCE))


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at a service and what was decided."""

    body: Json
    previous: InferenceServiceStatus
    owner: Owner
    gathered: Gathered
    plan: Plan
    at: float


class Reconciler:
    """Brings one service, known by its uid, to its spec and keeps it there."""

    def __init__(self, uid: str, tools: Tools, gatherer: Gatherer, pods: Pods) -> None:
        self.uid = uid
        self.wake = asyncio.Event()
        self.wake.set()
        self._tools = tools
        self._gatherer = gatherer
        self._children = Children(tools.kube, tools.index, tools.installation)
        self._service = Memo(self._parsed)
        self._status = Memo(status_of)
        self._spec: InferenceServiceSpec | None = None
        self._pods = pods
        self._started_at = time.time()
        self._memory: Memory | None = None
        self._actor = Actor(pods, tools.orders, tools.budgets, tools.events)
        self._decisions = Decisions(tools.metrics)
        self._pace = Pace(tools.tick_seconds)

    async def run(self) -> None:
        """Reconcile until the service is gone."""
        pause = 0.0
        meta: Json = {}
        while True:
            await self._pace.rest(self.wake, pause)
            async with self._tools.turns:
                self.wake.clear()
                body = self._tools.index.services.get(self.uid)
                if body is None or body["metadata"].get("deletionTimestamp"):
                    break
                meta = body["metadata"]
                pause = await self._guarded(body)
        if meta:
            self._tools.metrics.forget(meta["namespace"], meta["name"])

    async def _guarded(self, body: Json) -> float:
        """One tick; how long to rest after it."""
        began = time.perf_counter()
        result = "ok"
        try:
            pause = await self._tick(body)
        except NotLeader:
            result, pause = "not_leader", 0.5
        except KubeError as problem:
            result, pause = "error", self._pace.failed()
            _log.warning("%s: %s; next try in %.1f s", _key(body), problem, pause)
        except Exception:  # noqa: BLE001 - one service's defect must not stop the others; it is logged and counted
            result, pause = "crash", self._pace.failed()
            _log.exception("%s: this is a defect; next try in %.1f s", _key(body), pause)
        self._tools.metrics.reconcile_seconds.labels(result).observe(self._pace.looked(began))
        self._tools.cost.looked()
        self._status.forget()
        return pause

    async def _tick(self, body: Json) -> float:
        self._tools.lease.check()
        at, previous = time.time(), self._status(body)
        try:
            service = self._service(body)
        except ValidationError as problem:
            return await self._refuse(body, previous, spec_problem(problem), at)
        unusable = service_problem(service)
        if unusable is not None:
            return await self._refuse(body, previous, unusable, at)
        return await self._reconcile(body, service, previous, at)

    def _parsed(self, body: Json) -> InferenceService:
        """The service without its status. As long as the spec says the same it is the same object."""
        service = InferenceService.model_validate({**body, "status": {}})
        if self._spec == service.spec:
            return service.model_copy(update={"spec": self._spec})
        self._spec = service.spec
        return service

    async def _refuse(self, body: Json, previous: InferenceServiceStatus, message: str, at: float) -> float:
        """The spec can't be served: say so, touch nothing."""
        generation = int(body["metadata"].get("generation") or 0)
        written = refused(previous, generation, reasons.SPEC_INVALID, message, at)
        if await self._tools.reporter.report(body, previous, written, at):
            await self._tools.events.post(body["metadata"], reasons.SPEC_INVALID, "Validate", message, at, warning=True)
        self._pace.succeeded()
        return self._quiet()

    async def _reconcile(
        self, body: Json, service: InferenceService, previous: InferenceServiceStatus, at: float
    ) -> float:
        tools = self._tools
        owner = Owner(service.metadata.namespace, service.metadata.name, self.uid, service.spec)
        gathered = await self._gatherer.gather(service, previous, at, self._started_at)
        plan = self._decide(gathered, previous)
        trouble = await self._children.keep(owner, plan.pods)
        refusal = await self._pods.check(owner, service.metadata.generation, at)
        if refusal is not None:
            plan = replace(plan, actions=())
        elif _disruptive(plan):
            gathered, plan = await self._confirmed(service, previous, plan)
        look = _Look(body, previous, owner, gathered, plan, at)
        known = graver(refusal, trouble, _useless(gathered))
        await self._report_early(look, known)
        acted = await self._actor.act(body["metadata"], owner, plan, gathered, at)
        self._decisions.tell(gathered.snapshot, plan, previous.last_decision)
        # What was ordered is known even when its pod forgets it.
        trouble = graver(acted, known)
        shown = await self._report(look, trouble, self._actor.ordered or gathered.running)
        for reason, message in _complaints(trouble, gathered):
            await tools.events.post(body["metadata"], reason, "Reconcile", message, at, warning=True)
        self._measure(gathered.snapshot)
        return self._pause(gathered, plan, shown, acted)

    async def _report_early(self, look: _Look, trouble: Trouble | None) -> None:
        """Tell what was seen before pods are made and deleted: a death is news, and what follows from it takes a while.

        What can't be told now must not keep them from being made; it is told after that.
        """
        if not look.plan.actions or any(isinstance(action, Transit) for action in look.plan.actions):
            return
        try:
            await self._report(look, trouble, look.gathered.running)
        except KubeError as problem:
            _log.info("%s: the status comes later: %s", _key(look.body), problem)

    async def _report(
        self, look: _Look, trouble: Trouble | None, running: TransitionRecord | None
    ) -> InferenceServiceStatus:
        """Write the status where it says something new."""
        tools, owner, gathered = self._tools, look.owner, look.gathered
        report = Report(
            Observed(router_available(tools.index, self.uid), trouble),
            running,
            gathered.history,
            selector=_selector(owner),
            url=router_url(owner),
            memory=self._memory,
            yardstick=gathered.yardstick,
        )
        shown = status(gathered.snapshot, look.plan, look.previous, report)
        current = tools.index.services.get(self.uid)
        if current is not None:
            await tools.reporter.report(current, self._status(current), shown, look.at)
        for role in shown.roles:
            tools.metrics.ready.labels(owner.namespace, owner.name, role.name.value).set(role.ready)
        return shown

    def _measure(self, snapshot: Snapshot) -> None:
        """Set the gauges of demand and capacity, finer and more often than status tells them."""
        if self._memory is None:
            return
        metrics, fleet = self._tools.metrics, Fleet.of(snapshot)
        for phase in (Role.PREFILL, Role.DECODE):
            of = (snapshot.namespace, snapshot.name, phase.value)
            metrics.phase(metrics.demand, *of, demand(snapshot, phase))
            metrics.phase(metrics.capacity, *of, capacity(snapshot, self._memory, fleet, phase))

    def _decide(self, gathered: Gathered, previous: InferenceServiceStatus) -> Plan:
        memory = self._memory or rebuild(self._started_at, previous)
        self._memory = fold(memory, gathered.snapshot)
        return decide(gathered.snapshot, self._memory)

    async def _confirmed(
        self, service: InferenceService, previous: InferenceServiceStatus, plan: Plan
    ) -> tuple[Gathered, Plan]:
        """Decide again before anything that takes a pod out of service, and act only on agreement.

        The service is read from the API server itself: a hold, an approval that was withdrawn or another spec may not
        have come by the watch yet.
        """
        live = await self._live(service)
        again = await self._gatherer.gather(live or service, previous, time.time(), self._started_at)
        second = self._decide(again, previous)
        if live is not None and second.actions == plan.actions and self._still(live):
            return again, second
        self.wake.set()
        return again, replace(second, actions=(), message=f"{second.message}; not acted on: a second look differs")

    async def _live(self, service: InferenceService) -> InferenceService | None:
        """The service as the API server has it now; None when it is gone or can't be served any more."""
        meta = service.metadata
        try:
            body = await self._tools.kube.get(SERVICES_OF_INFERENCE, meta.namespace, meta.name)
            found = InferenceService.model_validate({**body, "status": {}})
        except (NotFound, ValidationError):
            return None
        self._tools.index.put_service(body)
        same = found.metadata.uid == meta.uid and found.metadata.generation == meta.generation
        return found if same and found.metadata.deletion_timestamp is None else None

    def _still(self, service: InferenceService) -> bool:
        """The service is there, and nobody has changed its spec since it was read."""
        body = self._tools.index.services.get(self.uid)
        if body is None or body["metadata"].get("deletionTimestamp"):
            return False
        return bool(body["metadata"].get("generation") == service.metadata.generation)

    def _pause(self, gathered: Gathered, plan: Plan, shown: InferenceServiceStatus, refusal: Trouble | None) -> float:
        """Look again soon while something is on its way; ever later while the API server refuses what is wanted."""
        if refusal is not None:
            return self._pace.failed()
        self._pace.succeeded()
        acted = bool(plan.actions) and not self._actor.refused
        soon = acted or shown.transition is not None or settling(gathered.snapshot)
        return self._pace.busy() if soon else self._quiet()

    def _quiet(self) -> float:
        tools = self._tools
        return self._pace.quiet(tools.cost.round_seconds(len(tools.index.services)))


def _useless(gathered: Gathered) -> Trouble | None:
    """An engine that refused to start: what it was told is wrong, and another pod would be told the same."""
    if not gathered.refusals:
        return None
    pod, message = min(gathered.refusals.items())
    return Trouble(reasons.START_REFUSED, f"engine of {pod}: {message or 'refused to start'}")


def _complaints(trouble: Trouble | None, gathered: Gathered) -> list[tuple[str, str]]:
    """Reasons and words of what a human should know."""
    told = [] if trouble is None else [(trouble.reason, trouble.message)]
    return [*told, (reasons.ANNOTATION_UNREADABLE, gathered.problem)] if gathered.problem else told


def _disruptive(plan: Plan) -> bool:
    return any(isinstance(action, Transit | DeletePod) for action in plan.actions)


def _selector(owner: Owner) -> str:
    labels = manifest_meta.selector(owner, "engine")
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _key(body: Json) -> str:
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"
