# SPDX-License-Identifier: Apache-2.0
"""What the operator knows of the cluster, fed by watches, by full listings and by the answers to its own writes.

An older version of an object never replaces a newer one, a deletion takes only the object of its own uid, and a uid
that is gone never comes back: the order in which the three sources speak does not matter. A listing therefore drops
only what was known before it was asked for: what came since may be younger than the listing. A name belongs to its
newest uid.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from gearshift.api import names
from gearshift.operator.childrecord import ChildRecord, child_record
from gearshift.operator.records import NodeRecord, PodRecord, node_record, pod_record, version_of

Json = dict[str, Any]
Key = tuple[str, str]  # kind, name
_TOMBSTONES: Final = 20_000  # far more objects than can be deleted while the answer to one write is on its way


class Index:
    """Services, pods, nodes and children; ``wake`` is called with the uid of every service that a change concerns."""

    def __init__(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self.services: dict[str, Json] = {}  # by uid
        self._uids: dict[Key, str] = {}  # of services, by namespace and name
        self.pods: dict[str, dict[str, PodRecord]] = defaultdict(dict)  # by uid of the service, then name
        self.nodes: dict[str, NodeRecord] = {}
        self.children: dict[str, dict[Key, ChildRecord]] = defaultdict(dict)  # by uid of the service, kind and name
        self._gone: dict[str, None] = {}  # uids of deleted objects, oldest first

    def put_service(self, body: Json) -> None:
        """An InferenceService as it is now."""
        uid = body["metadata"]["uid"]
        known = self.services.get(uid)
        if uid in self._gone:
            return
        if known is None or version_of(known) < version_of(body):
            if known is None and not self._succeed(body):
                return
            self.services[uid] = _slim(body)
            self._uids[_name(body)] = uid
            if known is None or _wishes(known) != _wishes(body):
                self._wake(uid)

    def drop_service(self, body: Json) -> None:
        """An InferenceService that is gone."""
        uid = body["metadata"]["uid"]
        self._bury(uid)
        if self.services.pop(uid, None) is not None:
            if self._uids.get(_name(body)) == uid:
                del self._uids[_name(body)]
            self._wake(uid)
        self.forget(uid)

    def put_pod(self, body: Json) -> None:
        """A pod as it is now; pods of others are not kept."""
        if self._has_pod(body):
            return
        record = pod_record(body)
        if record is None or record.uid in self._gone:
            return
        pods = self.pods[record.service_uid]
        known = pods.get(record.name)
        if known is None or known.version < record.version:
            pods[record.name] = record
            if known is None or replace(known, version=record.version) != record:
                self._wake(record.service_uid)

    def _has_pod(self, body: Json) -> bool:
        """This very version is known: listings bring most objects again, and a projection costs."""
        known = self.pods.get(_service_uid(body) or "", {}).get(body["metadata"]["name"])
        return known is not None and (known.uid, known.version) == (body["metadata"]["uid"], version_of(body))

    def drop_pod(self, service_uid: str, name: str, uid: str) -> None:
        """A pod that is gone."""
        self._bury(uid)
        pods = self.pods.get(service_uid, {})
        if name in pods and pods[name].uid == uid:
            del pods[name]
            self._wake(service_uid)
        self._sweep(service_uid)

    def put_node(self, body: Json) -> None:
        """A node as it is now."""
        record = node_record(body)
        known = self.nodes.get(record.name)
        if known is None or known.version <= record.version:
            self.nodes[record.name] = record
            if known != record:
                self._wake_users(record.name)

    def drop_node(self, name: str) -> None:
        """A node that is gone."""
        if self.nodes.pop(name, None) is not None:
            self._wake_users(name)

    def put_child(self, body: Json) -> None:
        """A child as it is now."""
        uid = _service_uid(body)
        if uid is None or body["metadata"]["uid"] in self._gone:
            return
        key = (body["kind"], body["metadata"]["name"])
        known = self.children[uid].get(key)
        if known is not None and known.version >= version_of(body):
            return
        record = self.children[uid][key] = child_record(body)
        if known is not None and known.uid == record.uid and known.says(record):
            record.applied = known.applied
        else:
            self._wake(uid)

    def drop_child(self, body: Json) -> None:
        """A child that is gone."""
        uid = _service_uid(body)
        if uid is not None:
            self._lose_child(uid, (body["kind"], body["metadata"]["name"]), body["metadata"]["uid"])

    def _lose_child(self, service_uid: str, key: Key, uid: str) -> None:
        self._bury(uid)
        known = self.children.get(service_uid, {}).get(key)
        if known is not None and known.uid == uid:
            del self.children[service_uid][key]
            self._wake(service_uid)
        self._sweep(service_uid)

    def forget(self, uid: str) -> None:
        """Drop what belonged to a service that is gone."""
        if uid not in self.services:
            self.pods.pop(uid, None)
            self.children.pop(uid, None)

    def lose_pods(self, gone: set[str]) -> None:
        """Drop pods by uid."""
        for service_uid, pods in list(self.pods.items()):
            for record in list(pods.values()):
                if record.uid in gone:
                    self.drop_pod(service_uid, record.name, record.uid)

    def lose_services(self, gone: set[str]) -> None:
        """Drop services by uid."""
        for uid in gone & set(self.services):
            self.drop_service(self.services[uid])

    def lose_children(self, gone: set[str]) -> None:
        """Drop children by uid."""
        for service_uid, children in list(self.children.items()):
            for key, record in list(children.items()):
                if record.uid in gone:
                    self._lose_child(service_uid, key, record.uid)

    def _succeed(self, body: Json) -> bool:
        """Take the name over: a service of it and another uid is gone, even when no watch told of its deletion.

        False when the name belongs to a newer service already.
        """
        known = self.services.get(self._uids.get(_name(body), ""))
        if known is not None and version_of(known) > version_of(body):
            return False
        if known is not None:
            self.drop_service(known)
        return True

    def _sweep(self, uid: str) -> None:
        """Keep no empty shelf of a service that is gone."""
        if uid not in self.services:
            for shelves in (self.pods, self.children):
                if uid in shelves and not shelves[uid]:
                    del shelves[uid]

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > _TOMBSTONES:
            del self._gone[next(iter(self._gone))]

    def _wake_users(self, node: str) -> None:
        for uid, pods in self.pods.items():
            if any(pod.node == node for pod in pods.values()):
                self._wake(uid)


def _wishes(body: Json) -> tuple[Any, ...]:
    """What others may want of a service. Its status is the operator's own word and no news to it."""
    meta = body["metadata"]
    return meta.get("generation"), meta.get("annotations"), meta.get("labels"), meta.get("deletionTimestamp")


def _name(body: Json) -> Key:
    return body["metadata"]["namespace"], body["metadata"]["name"]


def _service_uid(body: Json) -> str | None:
    label = (body["metadata"].get("labels") or {}).get(names.LABEL_SERVICE_UID)
    return None if label is None else str(label)


def _slim(body: Json) -> Json:
    """A copy without the managed fields, which are the larger half of many objects."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return {**{key: value for key, value in body.items() if key != "metadata"}, "metadata": metadata}
