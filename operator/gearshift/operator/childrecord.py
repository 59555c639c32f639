# SPDX-License-Identifier: Apache-2.0
"""What the operator keeps of the children of services: text instead of objects, which take many times the memory, and
the memory of which manifest a child was found to be equal to."""

import json
from dataclasses import dataclass
from typing import Any

from gearshift.operator.manifests.children import applied_digest, as_applied
from gearshift.operator.records import version_of

Json = dict[str, Any]
_UNREAD = ("managedFields", "resourceVersion", "generation")  # the first is the larger half of many objects


@dataclass(slots=True)
class ChildRecord:
    """One version of one child."""

    kind: str
    name: str
    uid: str
    version: int  # resourceVersion
    available: bool  # it has available replicas
    text: str  # JSON of the object, without its status and what counts its versions
    applied: str = ""  # digest of the manifest that it was found to be equal to

    @property
    def body(self) -> Json:
        """The object, without its status and what counts its versions."""
        found: Json = json.loads(self.text)
        return found

    def says(self, other: "ChildRecord") -> bool:
        """It says nothing else than another version of the child, and so may take over what was found out about it."""
        return (self.text, self.available) == (other.text, other.available)

    def equals(self, wanted: Json) -> bool:
        """It was last applied from this very manifest, and nobody has changed a field of it since."""
        digest = applied_digest(wanted)
        if self.applied != digest and as_applied(self.body, wanted):
            self.applied = digest
        return self.applied == digest


def child_record(body: Json) -> ChildRecord:
    """Projection of a child."""
    meta = {key: value for key, value in body["metadata"].items() if key not in _UNREAD}
    kept = {**{key: value for key, value in body.items() if key != "status"}, "metadata": meta}
    available = int((body.get("status") or {}).get("availableReplicas") or 0) > 0
    text = json.dumps(kept, separators=(",", ":"))
    return ChildRecord(body["kind"], meta["name"], meta["uid"], version_of(body), available, text)
