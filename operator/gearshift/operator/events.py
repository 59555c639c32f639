# SPDX-License-Identifier: Apache-2.0
"""Events: few, each once. They are for people; nothing reads state from them."""

import hashlib
import logging
from datetime import UTC, datetime
from typing import Any, Final

from gearshift.api import names
from gearshift.operator.errors import KubeError
from gearshift.operator.kube import Kube

_REPEAT_SECONDS: Final = 600.0
_MOST_KEPT: Final = 4096
_NOTE_BYTES: Final = 1024  # the API server counts bytes
_log = logging.getLogger(__name__)


class Events:
    """Posts events about services; the same words about the same object are posted once in ten minutes."""

    def __init__(self, kube: Kube, identity: str) -> None:
        self._kube = kube
        self._identity = identity[:128]
        self._posted: dict[tuple[str, str, str], float] = {}

    async def post(
        self, regarding: dict[str, Any], reason: str, action: str, note: str, at: float, *, warning: bool = False
    ) -> None:
        """Post one event about an object, given by its metadata; a failure is logged and changes nothing."""
        key = (regarding["uid"], reason, note)
        if at - self._posted.get(key, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return
        try:
            await self._kube.create_event(
                self._event(regarding, reason, action, note, at, "Warning" if warning else "Normal")
            )
        except KubeError as problem:
            _log.warning("event %s about %s/%s is lost: %s", reason, regarding["namespace"], regarding["name"], problem)
            return
        self._posted[key] = at
        if len(self._posted) > _MOST_KEPT:
            self._posted = {k: when for k, when in self._posted.items() if at - when < _REPEAT_SECONDS}

    def _event(
        self, regarding: dict[str, Any], reason: str, action: str, note: str, at: float, kind: str
    ) -> dict[str, Any]:
        unique = hashlib.sha256(f"{regarding['uid']} {reason} {note} {at}".encode()).hexdigest()[:16]
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": regarding["namespace"], "name": f"{regarding['name'][:200]}.{unique}"},
            "eventTime": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": names.FIELD_MANAGER,
            "reportingInstance": self._identity,
            "type": kind,
            "reason": reason,
            "action": action,
            "note": note.encode()[:_NOTE_BYTES].decode(errors="ignore"),
            "regarding": {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "namespace": regarding["namespace"],
                "name": regarding["name"],
                "uid": regarding["uid"],
            },
        }
