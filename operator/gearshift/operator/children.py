# SPDX-License-Identifier: Apache-2.0
"""Keeps the children of a service, but its pods, as they should be. A child that is so already is not written."""

from typing import Any

from gearshift.api import names, reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.operator.errors import Forbidden, Invalid, NotFound
from gearshift.operator.index import Index, Key
from gearshift.operator.kube import Kube
from gearshift.operator.manifests.children import applied_digest, build_children
from gearshift.operator.manifests.meta import Installation, Owner
from gearshift.operator.resources import BY_KIND
from gearshift.policy.conditionview import Trouble, graver

Json = dict[str, Any]


class Children:
    """Children of one service. Remembers the digests of what it wants, so that quiet looks build no manifest."""

    def __init__(self, kube: Kube, index: Index, installation: Installation) -> None:
        self._kube = kube
        self._index = index
        self._installation = installation
        self._wanted: tuple[InferenceServiceSpec, int | None, dict[Key, str]] | None = None

    async def keep(self, owner: Owner, pods: int | None) -> Trouble | None:
        """Apply what is missing or differs; the gravest thing that stands in the way, if there is any.

        ``pods`` is the number that scaling wants, None where the spec says it.

        Raises:
            KubeError: the API server can't be asked; worth another try.
        """
        if self._kept(owner, pods):
            return None
        trouble: Trouble | None = None
        manifests = build_children(owner, self._installation, pods)
        self._wanted = (owner.spec, pods, {_key(wanted): applied_digest(wanted) for wanted in manifests})
        for wanted in manifests:
            live = self._index.children.get(owner.uid, {}).get(_key(wanted))
            if live is None or not live.equals(wanted):
                body = live.body if live is not None else None
                trouble = graver(trouble, await _apply(self._kube, self._index, owner, wanted, body))
        return trouble

    def _kept(self, owner: Owner, pods: int | None) -> bool:
        """Nothing else is wanted than at the last look, and each child was found to be so."""
        if self._wanted is None or self._wanted[0] is not owner.spec or self._wanted[1] != pods:
            return False
        live = self._index.children.get(owner.uid, {})
        return all(key in live and live[key].applied == digest for key, digest in self._wanted[2].items())


def _key(manifest: Json) -> Key:
    return manifest["kind"], manifest["metadata"]["name"]


def router_available(index: Index, service_uid: str) -> bool:
    """The router's Deployment has an available pod."""
    children = index.children.get(service_uid, {}).values()
    return any(record.available for record in children if record.kind == "Deployment")


async def _apply(kube: Kube, index: Index, owner: Owner, wanted: Json, live: Json | None) -> Trouble | None:
    resource = BY_KIND[wanted["kind"]]
    name = wanted["metadata"]["name"]
    if live is None:
        try:
            live = await kube.get(resource, owner.namespace, name)
        except NotFound:
            live = None
    if live is not None and not controlled_by(live, owner.uid):
        return conflict(live, owner, f"{wanted['kind']} {name}")
    try:
        index.put_child(await kube.apply(resource, wanted))
    except (Invalid, Forbidden) as problem:
        passing = "being terminated" in problem.message
        return Trouble(reasons.CHILD_REFUSED, f"{wanted['kind']} {name}: {problem.message}", passing=passing)
    return None


def conflict(live: Json, owner: Owner, what: str) -> Trouble:
    """``live`` has the name of a child of ``owner`` and is not its own.

    What an earlier service of the same name left behind is on its way out; anything else is for a human to move.
    """
    owners = live["metadata"].get("ownerReferences") or []
    if any((ref["kind"], ref["name"]) == (names.KIND, owner.name) for ref in owners if ref["uid"] != owner.uid):
        return Trouble(reasons.PREDECESSOR, f"{what} of an earlier {owner.name} is not gone yet", passing=True)
    return Trouble(reasons.CHILD_CONFLICT, f"{what} exists and does not belong to this service")


def controlled_by(body: Json, uid: str) -> bool:
    """The object's controller is the one of that uid."""
    owners = body["metadata"].get("ownerReferences") or []
    return any(owner.get("controller") and owner["uid"] == uid for owner in owners)
