# SPDX-License-Identifier: Apache-2.0
"""What tells that the pods are too few, whatever the demand is thought to be: requests wait, or miss the objectives."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gearshift.policy import tuning
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Memory
from gearshift.policy.snapshot import Signal, Snapshot


@dataclass(frozen=True, slots=True)
class Symptoms:
    """Fewest pods by what waits: to mend it, to stay, and to carry the load at all."""

    up: int
    down: int
    carry: int


def symptoms(snapshot: Snapshot, fleet: Fleet, values: Mapping[Signal, float]) -> Symptoms:
    """Pods by what waits, for ``n`` serving pods of ``all``; ``q`` is the mean time in the queue by the TTFT objective.

    | KV cache | waiting / pod | q | waiting now by its mean | up | down | carry |
    |---|---|---|---|---|---|---|
    | any | any | > 0.5 | >= 0.5 | n + n q, at most 2 n | n + 1 | n + 1 |
    | any | any | > 0.15 | >= 0.5 | n + n q | n + 1 | 1 |
    | >= 0.9 | any | any, or unknown | >= 0.5 | n + 1 | n + 1 | 1 |
    | any | >= 1 | any, or unknown | >= 0.5 | n + 1 | n + 1 | 1 |
    | as one of these | | | < 0.5: what there is clears the queue | 1 | all | 1 |
    | else | | > 0.075 | any | 1 | all | 1 |
    | else | | | any | 1 | 1 | 1 |

    Pods that have served for less than half a window stay, and are not among the ``n``: they did not make the queue.
    """
    pods, serving, waiting = _settled(snapshot, fleet), len(fleet.serving), values[Signal.WAITING]
    queue = _queue_share(snapshot, waiting)
    full = values[Signal.KV_USAGE] >= tuning.KV_FULL or waiting / serving >= tuning.QUEUE_SOME
    if not full and queue <= tuning.QUEUE_SHARE:
        return Symptoms(1, serving if queue > tuning.QUEUE_SHARE / 2 else 1, 1)
    if sum(pod.waiting for pod in fleet.serving) < waiting / 2:
        return Symptoms(1, serving, 1)
    more = math.ceil(pods * min(queue, 1.0)) if queue > tuning.QUEUE_SHARE else 1
    return Symptoms(pods + more, max(serving, pods + 1), pods + 1 if queue > tuning.BURIED_SHARE else 1)


def _queue_share(snapshot: Snapshot, waiting: float) -> float:
    """Mean time in the queue by the TTFT objective; 0 where the rate of requests is not known."""
    requests = snapshot.metrics.value(Signal.REQUESTS)
    return waiting / requests / max(snapshot.spec.policy.objectives.ttft.seconds, 0.001) if requests else 0.0


def _settled(snapshot: Snapshot, fleet: Fleet) -> int:
    """Serving pods that did not just come, which the readings are about; all, where all of them are new."""
    since = snapshot.at - tuning.EVIDENCE_WINDOWS * snapshot.spec.policy.window.seconds
    return sum(1 for pod in fleet.serving if pod.epoch > 0 or pod.since <= since) or len(fleet.serving)


def missed(snapshot: Snapshot, memory: Memory, fleet: Fleet, values: Mapping[Signal, float], work: float) -> int:
    """Pods by missed objectives, for ``n`` serving pods and ``work`` in pods.

    | 90th percentile of TTFT or ITL | work / n | a pod was added within `tuning.REVERSAL_SECONDS` | pods |
    |---|---|---|---|
    | above its objective | >= 0.25: requests are in each other's way | no | n + 1 |
    | above its objective | >= 0.25 | yes: what it does is not known yet | 1 |
    | above its objective | < 0.25: idle pods miss it too | any | 1 |
    | else | | | 1 |
    """
    pods, grown = len(fleet.serving), memory.scale.grown_at if memory.scale is not None else None
    waits = grown is not None and snapshot.at - grown < tuning.REVERSAL_SECONDS
    return pods + 1 if late(snapshot, values) and work >= tuning.MISSED_SHARE * pods and not waits else 1


def late(snapshot: Snapshot, values: Mapping[Signal, float]) -> bool:
    """Whether more than a tenth of the requests miss an objective."""
    objectives = snapshot.spec.policy.objectives
    return values[Signal.TTFT_P90] > objectives.ttft.seconds or values[Signal.ITL_P90] > objectives.itl.seconds
