# SPDX-License-Identifier: Apache-2.0
"""Creates and deletes engine pods, and asks beforehand whether the API server would take the pods of a spec."""

from typing import Any, Final

from gearshift.api import names, reasons
from gearshift.operator.children import conflict, controlled_by
from gearshift.operator.errors import AlreadyExists, ChildRefused, Conflict, Forbidden, Invalid, NotFound
from gearshift.operator.index import Index
from gearshift.operator.kube import Kube
from gearshift.operator.manifests.meta import Installation, Owner
from gearshift.operator.manifests.pod import build_pod
from gearshift.operator.manifests.revision import revision
from gearshift.operator.memo import Memo
from gearshift.operator.resources import PODS
from gearshift.policy.conditionview import Trouble
from gearshift.policy.plan import CreatePod, DeletePod

_RECHECK_SECONDS: Final = 60.0
_PASSING: Final = ("exceeded quota", "service account", "serviceaccount", "being terminated")
"""What admission says of things that pass by themselves, or that a pod which goes away makes room for."""
_UNTRIED: Final = "does not support dry run"
"""What the API server says where a webhook of the cluster can only be asked in earnest."""


class Pods:
    """Pods of one service."""

    def __init__(self, kube: Kube, index: Index, installation: Installation) -> None:
        self._kube = kube
        self._index = index
        self._installation = installation
        self._unbuildable = Memo(self._refusal_to_build, lambda owner: owner.spec)
        self._revision = Memo(revision)
        self._accepted = ""  # revision
        self._refused: tuple[int, float, Trouble] | None = None  # generation, when, what

    async def check(self, owner: Owner, generation: int, at: float) -> Trouble | None:
        """Whether pods of this spec can be made. A new revision is tried on the API server without making anything."""
        unbuildable = self._unbuildable(owner)
        if unbuildable is not None:
            return unbuildable
        wanted = self._revision(owner.spec)
        if wanted == self._accepted or any(
            pod.revision == wanted for pod in self._index.pods.get(owner.uid, {}).values()
        ):
            return None
        if self._refused is not None and self._refused[0] == generation and at - self._refused[1] < _RECHECK_SECONDS:
            return self._refused[2]
        trouble = await self._try(self._first(owner), owner.name, wanted)
        self._refused = None if trouble is None else (generation, at, trouble)
        if trouble is None:
            self._accepted = wanted
        return trouble

    def _first(self, owner: Owner) -> dict[str, Any]:
        """Manifest of the pod that a new service would begin with."""
        return build_pod(owner, self._installation, 0, owner.spec.roles[0].name, owner.spec.parallelism.start)

    def _refusal_to_build(self, owner: Owner) -> Trouble | None:
        try:
            self._first(owner)
        except ChildRefused as problem:
            return Trouble(problem.reason, problem.message, spec=True)
        return None

    def count(self, service_uid: str) -> int:
        """Pods of a service that exist, those on their way out included."""
        return len(self._index.pods.get(service_uid, {}))

    async def create(self, owner: Owner, action: CreatePod) -> Trouble | None:
        """Make one pod; a pod of ours that has the name already counts as made."""
        manifest = build_pod(owner, self._installation, action.ordinal, action.role, action.layout)
        try:
            self._index.put_pod(await self._kube.create(PODS, manifest))
        except AlreadyExists:
            return await self._adopt(owner, names.pod_name(owner.name, action.ordinal))
        except Invalid as problem:
            return Trouble(reasons.POD_REFUSED, problem.message, spec=True)
        except Forbidden as problem:
            return Trouble(reasons.POD_REFUSED, problem.message, passing=_passes(problem))
        return None

    async def delete(self, owner: Owner, action: DeletePod) -> None:
        """Delete one pod and no namesake of it."""
        try:
            answer = await self._kube.delete_pod(owner.namespace, action.name, action.uid, force=action.force)
        except (NotFound, Conflict):
            self._index.drop_pod(owner.uid, action.name, action.uid)
            return
        if answer.get("kind") == "Pod":
            self._index.put_pod(answer)

    async def _adopt(self, owner: Owner, name: str) -> Trouble | None:
        try:
            live = await self._kube.get(PODS, owner.namespace, name)
        except NotFound:
            return None
        if not controlled_by(live, owner.uid):
            return conflict(live, owner, f"Pod {name}")
        self._index.put_pod(live)
        return None

    async def _try(self, manifest: dict[str, Any], service: str, wanted: str) -> Trouble | None:
        trial = {**manifest, "metadata": {**manifest["metadata"], "name": f"{service}-{wanted}"}}
        try:
            await self._kube.create(PODS, trial, dry_run=True)
        except (Invalid, Forbidden) as problem:
            if _UNTRIED in problem.message or (isinstance(problem, Forbidden) and _passes(problem)):
                return None
            return Trouble(reasons.POD_REFUSED, problem.message, spec=True)
        return None


def _passes(problem: Forbidden) -> bool:
    return any(words in problem.message.lower() for words in _PASSING)
