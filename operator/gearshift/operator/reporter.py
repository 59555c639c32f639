# SPDX-License-Identifier: Apache-2.0
"""Writes the status of a service when it says something new, and tells events and metrics the same thing."""

import logging
from typing import Any

from pydantic import ValidationError

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceStatus
from gearshift.api.v1alpha1.status import TransitionRecord
from gearshift.api.vocabulary import TransitionResult
from gearshift.operator.errors import Conflict, NotFound
from gearshift.operator.events import Events
from gearshift.operator.index import Index
from gearshift.operator.kube import Kube
from gearshift.operator.metrics import Metrics
from gearshift.operator.resources import SERVICES_OF_INFERENCE

Json = dict[str, Any]
_log = logging.getLogger(__name__)
_ENDED = {
    TransitionResult.COMMITTED: reasons.TRANSITION_COMMITTED,
    TransitionResult.ROLLED_BACK: reasons.TRANSITION_ROLLED_BACK,
    TransitionResult.FAILED: reasons.TRANSITION_FAILED,
}


class Reporter:
    """Reports on services."""

    def __init__(self, kube: Kube, index: Index, events: Events, metrics: Metrics) -> None:
        self._kube = kube
        self._index = index
        self._events = events
        self._metrics = metrics

    async def report(
        self, body: Json, previous: InferenceServiceStatus, status: InferenceServiceStatus, at: float
    ) -> bool:
        """Write ``status`` unless the object has it already, as ``previous``; True when it was written."""
        if previous == status:
            return False
        meta = body["metadata"]
        try:
            written = await self._kube.apply_status(meta["namespace"], meta["name"], meta["uid"], status.dump())
        except (NotFound, Conflict):
            await self._look_again(body)
            return False
        self._index.put_service(written)
        self._metrics.status_writes.labels(meta["namespace"], meta["name"]).inc()
        await self._tell(meta, previous, status, at)
        return True

    async def _look_again(self, body: Json) -> None:
        """The write met no object, another uid, or too many other writers: only a fresh look tells which.

        Raises:
            KubeError: the object can't be looked at now.
        """
        meta = body["metadata"]
        try:
            live = await self._kube.get(SERVICES_OF_INFERENCE, meta["namespace"], meta["name"])
        except NotFound:
            live = None
        if live is None or live["metadata"]["uid"] != meta["uid"]:
            self._index.drop_service(body)
        if live is not None:
            self._index.put_service(live)

    async def _tell(
        self, meta: Json, previous: InferenceServiceStatus, status: InferenceServiceStatus, at: float
    ) -> None:
        """Events and counters of the transitions that began or ended between two statuses."""
        known = {item.id for item in previous.transition_history}
        for item in reversed(status.transition_history):
            if item.id not in known:
                await self._ended(meta, item, at)
        now, before = status.transition, previous.transition
        if now is not None and (before is None or before.id != now.id):
            note = f"{_named(now)} (plan {now.id})"
            await self._events.post(meta, reasons.TRANSITION_STARTED, "Transition", note, at)

    async def _ended(self, meta: Json, item: TransitionRecord, at: float) -> None:
        labels = (meta["namespace"], meta["name"], item.kind.value, item.from_, item.to, item.result.value)
        self._metrics.transitions.labels(*labels).inc()
        proof = "" if item.proof is None else f", epoch {item.proof.epoch}, {item.proof.ranks} ranks confirmed"
        seconds = "" if item.duration_milliseconds is None else f" after {item.duration_milliseconds / 1000:.1f} s"
        why = "" if item.result is TransitionResult.COMMITTED else _why(item)
        note = f"{_named(item)}{seconds}{proof}{why} ({item.id})"
        warning = item.result is not TransitionResult.COMMITTED
        await self._events.post(
            meta, _ENDED.get(item.result, reasons.TRANSITION_FAILED), "Transition", note, at, warning=warning
        )


def _why(item: TransitionRecord) -> str:
    further = "; it is not tried again on this pod" if item.retryable is False else ""
    return f": {item.reason} {item.message}".rstrip() + further


def status_of(body: Json) -> InferenceServiceStatus:
    """Status of an object; an empty one when what is there can't be read, so that it is written anew."""
    try:
        return InferenceServiceStatus.model_validate(body.get("status") or {})
    except ValidationError as problem:
        meta = body["metadata"]
        _log.warning("status of %s/%s can't be read and is written anew: %s", meta["namespace"], meta["name"], problem)
        return InferenceServiceStatus()


def _named(item: TransitionRecord) -> str:
    return f"{item.kind.value} of {item.pod} from {item.from_} to {item.to}"
