# SPDX-License-Identifier: Apache-2.0
"""Names plans, so that a human can approve exactly what was proposed."""

import hashlib
from collections.abc import Iterable

from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Action, CreatePod, DeletePod, Transit


def plan_id(service_uid: str, actions: Iterable[Action], fleet: Fleet) -> str:
    """Short hash of what would be done to which pods at which epochs: equal plans have equal ids, at any time.

    A pod that was made anew or has changed since has another uid or epoch, so an old approval does not fit it.
    """
    uids = {pod.name: pod.uid for pod in fleet.pods}
    parts = sorted(_part(action, uids) for action in actions)
    return hashlib.sha256("\n".join([service_uid, *parts]).encode()).hexdigest()[:12]


def _part(action: Action, uids: dict[str, str]) -> str:
    match action:
        case CreatePod():
            return f"create {action.ordinal} {action.role} {action.layout}"
        case DeletePod():
            return f"delete {action.uid} {action.force}"
        case Transit():
            threshold = "" if action.threshold_tokens is None else f" {action.threshold_tokens}"
            return f"{action.kind} {uids.get(action.pod, action.pod)} {action.expected_epoch} {action.to}{threshold}"
