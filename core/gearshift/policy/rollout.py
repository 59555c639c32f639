# SPDX-License-Identifier: Apache-2.0
"""Rollout: pods made from an older spec are replaced, one at a time."""

from gearshift.api import reasons
from gearshift.api.vocabulary import PodPhase
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import DeletePod, Hold
from gearshift.policy.snapshot import PodView

_IDLE_PHASES = frozenset({PodPhase.STARTING, PodPhase.FAILED, PodPhase.UNKNOWN})


def rollout(fleet: Fleet) -> tuple[DeletePod, ...] | Hold | None:
    """Deletions that move the rollout on, why it waits, or None when every pod is up to date.

    | outdated pod | every other pod of the service serves | result |
    |---|---|---|
    | not ready, and Starting, Failed or Unknown | any | deleted at once, all such pods: they serve nothing |
    | ready, not in transition | yes | one is deleted: those that do not serve first, then the lowest ordinal |
    | ready | no | wait |
    | in transition | any | wait |

    A pod that is ready but can't be asked (Unknown) may be serving, so it is never taken while another pod does not.
    """
    if not fleet.outdated:
        return None
    useless = tuple(pod for pod in fleet.outdated if not pod.ready and pod.phase in _IDLE_PHASES)
    if useless:
        return tuple(_removal(pod) for pod in useless)
    for pod in sorted(fleet.outdated, key=lambda pod: (pod.serving, pod.ordinal)):
        if pod.name not in fleet.moving and _others_serve(fleet, pod):
            return (_removal(pod),)
    waiting = [pod.name for pod in fleet.pods if not pod.serving][:3]
    message = f"{len(fleet.outdated)} pods of an older spec remain; not serving: {', '.join(waiting) or 'none'}"
    return Hold(reasons.ROLLOUT_WAITING, message)


def _others_serve(fleet: Fleet, pod: PodView) -> bool:
    return len(fleet.serving) - pod.serving == len(fleet.pods) - 1


def _removal(pod: PodView) -> DeletePod:
    return DeletePod(pod.name, pod.uid, reasons.ROLLOUT)
