# SPDX-License-Identifier: Apache-2.0
"""Gathers one snapshot of a service: index, sidecars, Prometheus."""

import asyncio
import logging
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from gearshift.api.v1alpha1 import InferenceService, InferenceServiceStatus
from gearshift.api.v1alpha1.status import PodStatus, TransitionRecord
from gearshift.api.wire import PodState
from gearshift.operator.annotations import said
from gearshift.operator.budgets import Budgets
from gearshift.operator.errors import SidecarError
from gearshift.operator.index import Index
from gearshift.operator.manifests.revision import revision
from gearshift.operator.memo import Memo
from gearshift.operator.prom import Prometheus, Signals
from gearshift.operator.records import PodRecord
from gearshift.operator.sidecars import Sidecars
from gearshift.operator.views import in_flight, node_lost, pod_view, start_refused
from gearshift.operator.yardstick import yardstick
from gearshift.policy.history import ended, merged, overdue
from gearshift.policy.snapshot import InFlight, Metrics, PodView, Snapshot

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gathered:
    """A snapshot and what else one look at a service brought."""

    snapshot: Snapshot
    running: TransitionRecord | None
    history: tuple[TransitionRecord, ...]
    addresses: Mapping[str, str]  # pod -> IP
    fencing_seen: int  # highest fencing token that a sidecar knows
    refusals: Mapping[str, str] = field(default_factory=dict)  # pod -> why its engine refused to start
    yardstick: str = ""  # where the rates of the snapshot come from, or what is not known
    problem: str = ""  # an annotation that can't be read, and why


class Gatherer:
    """Looks at one service. Remembers the last word of each sidecar and the last readings."""

    def __init__(
        self,
        index: Index,
        sidecars: Sidecars,
        prometheus: Prometheus,
        budgets: Budgets,
        *,
        node_lost_seconds: float,
        transition_grace_seconds: float,
    ) -> None:
        self._index = index
        self._budgets = budgets
        self._sidecars = sidecars
        self._signals = Signals(prometheus)
        self._revision = Memo(revision)
        self._node_lost_seconds = node_lost_seconds
        self._transition_grace_seconds = transition_grace_seconds
        self._heard: dict[str, PodState] = {}  # by uid of the pod
        self._absent: dict[str, float] = {}  # node that pods are on and that is not known -> since when
        self._complained: set[str] = set()  # uids of pods whose refusal has been logged

    async def gather(
        self, service: InferenceService, previous: InferenceServiceStatus, at: float, started_at: float
    ) -> Gathered:
        """One look. ``at`` is now; ``started_at`` is when this process began to watch the service."""
        meta = service.metadata
        records = sorted(self._index.pods.get(meta.uid, {}).values(), key=lambda record: record.ordinal)
        lost = self._lost(records, at)
        answers = await self._ask([record for record in records if not lost[record.uid]])
        limit = service.spec.policy.drain_timeout.seconds + self._transition_grace_seconds
        stuck = {uid for uid, state in answers.items() if _stuck(state, at, limit)}
        views = self._views(records, answers, lost, stuck, _earlier(previous, records, started_at))
        readings = await self._signals.read(meta.name, meta.namespace, service.spec.policy, views, at)
        mapped = {record.name: _could_finish(record, lost=lost[record.uid]) for record in records}
        running, history = merged(previous, answers.values(), mapped, at, limit)
        measure = yardstick(service.spec, self._gpus(records))
        human = said(meta.annotations)
        snapshot = Snapshot(
            at=at,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            generation=meta.generation,
            spec=service.spec,
            revision=self._revision(service.spec),
            pods=views,
            metrics=Metrics(readings),
            in_flight=_flights({uid: state for uid, state in answers.items() if uid not in stuck}, running),
            approved=None if human.approval is None else human.approval.plan,
            approved_until=None if human.approval is None else human.approval.until,
            hold=human.hold,
            hold_note=human.hold_note,
            ended=ended(history),
            namespace_budget=self._budgets.of(meta.namespace, meta.uid),
            rates=measure.rates,
        )
        seen = max((state.fencing_token for state in answers.values()), default=0)
        addresses = {record.name: record.address for record in records if record.address}
        refusals = {state.pod: state.message for state in answers.values() if start_refused(state)}
        return Gathered(snapshot, running, tuple(history), addresses, seen, refusals, measure.source, human.problem)

    def _gpus(self, records: list[PodRecord]) -> set[str]:
        """GPU products of the nodes that pods are on."""
        return {node.gpu for record in records if (node := self._index.nodes.get(record.node)) is not None}

    def _lost(self, records: list[PodRecord], at: float) -> dict[str, bool]:
        """By uid, whether the node of a pod is lost."""
        nodes = self._index.nodes
        absent = {record.node for record in records if record.node} - set(nodes)
        self._absent = {node: self._absent.get(node, at) for node in absent}
        return {r.uid: node_lost(r, nodes, self._absent, at, self._node_lost_seconds) for r in records}

    async def _ask(self, records: list[PodRecord]) -> dict[str, PodState]:
        """States by uid of the pods that answer now."""
        asked = [record for record in records if record.address and not record.ended]
        answers = await asyncio.gather(*(self._state(record) for record in asked))
        states = {record.uid: state for record, state in zip(asked, answers, strict=True) if state is not None}
        present = {record.uid for record in records}
        self._complained &= present
        self._heard = {uid: state for uid, state in (self._heard | states).items() if uid in present}
        return states

    async def _state(self, record: PodRecord) -> PodState | None:
        try:
            state = await self._answer(record)
        except SidecarError as problem:
            self._complain(record, problem)
            return None
        if state.uid != record.uid:
            _log.debug(
                "address %s of pod %s/%s answers for %s", record.address, record.namespace, record.name, state.pod
            )
            return None
        return state

    async def _answer(self, record: PodRecord) -> PodState:
        """What a sidecar says. One that has answered before is asked again: it may be this process that was late."""
        try:
            return await self._sidecars.state(record.address)
        except SidecarError as problem:
            if problem.status or record.uid not in self._heard:
                raise
        return await self._sidecars.state(record.address)

    def _complain(self, record: PodRecord, problem: SidecarError) -> None:
        """Silence is common while a pod starts or ends; a refusal is a fault of the set-up, told once a pod."""
        level = logging.WARNING if problem.status and record.uid not in self._complained else logging.DEBUG
        if problem.status:
            self._complained.add(record.uid)
        _log.log(level, "pod %s/%s can't be asked: %s", record.namespace, record.name, problem)

    def _views(
        self,
        records: list[PodRecord],
        answers: Mapping[str, PodState],
        lost: Mapping[str, bool],
        stuck: AbstractSet[str],
        earlier: Mapping[str, PodStatus],
    ) -> tuple[PodView, ...]:
        return tuple(
            pod_view(
                record,
                answers.get(record.uid),
                self._heard.get(record.uid) or earlier.get(record.name),
                lost=lost[record.uid],
                stuck=record.uid in stuck,
            )
            for record in records
        )


def _earlier(previous: InferenceServiceStatus, records: list[PodRecord], started_at: float) -> dict[str, PodStatus]:
    """What status says of pods that are older than this process; a younger pod may only share the name."""
    old = {record.name for record in records if record.created_at < started_at and record.ready}
    return {pod.name: pod for pod in previous.pods if pod.name in old}


def _stuck(state: PodState, at: float, limit_seconds: float) -> bool:
    """In a transition for longer than any may take."""
    running = state.transition
    return running is not None and running.finished_at is None and overdue(running.started_at, at, limit_seconds)


def _could_finish(record: PodRecord, *, lost: bool) -> bool:
    return not (record.deleting or record.ended or lost)


def _flights(answers: Mapping[str, PodState], running: TransitionRecord | None) -> tuple[InFlight, ...]:
    """Running transitions: by the sidecars' word, and the one that status knows of a pod that does not answer."""
    flights = in_flight(answers)
    if running is None or any(flight.id == running.id for flight in flights):
        return flights
    known = InFlight(running.id, running.pod, running.kind, running.to, running.started_at.timestamp())
    return (*flights, known)
