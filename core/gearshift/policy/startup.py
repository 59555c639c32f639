# SPDX-License-Identifier: Apache-2.0
"""How long a pod of this service takes from its creation to serving, as past pods did."""

from collections.abc import Mapping
from statistics import median

from gearshift.api.v1alpha1.status import StartupStatus
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Memory, Startup
from gearshift.policy.snapshot import PodView

MOST_KEPT = 16


def startups(memory: Memory, fleet: Fleet) -> Mapping[str, Startup]:
    """By uid, the last `MOST_KEPT` start-ups.

    | serving pod | counts |
    |---|---|
    | measured before | as it was |
    | seen serving before | no: it may have been anything since |
    | has had transitions | no: it serves since the last one |
    | older than this watch, and something is known | no: it may have been down in between |
    | else | from its creation to when it began to serve |
    """
    known = dict(memory.startups)
    for pod in sorted(fleet.serving, key=lambda pod: (pod.since, pod.uid)):
        if pod.uid not in known and _counts(pod, memory):
            known[pod.uid] = Startup(pod.revision, pod.since - pod.created_at)
    return dict(list(known.items())[-MOST_KEPT:])


def _counts(pod: PodView, memory: Memory) -> bool:
    if pod.uid in memory.seen or pod.epoch > 0 or pod.since <= pod.created_at:
        return False
    return pod.created_at >= memory.started_at or not memory.startups


def expected_seconds(memory: Memory, revision: str) -> float | None:
    """Median of the start-ups of a revision; of all when none of it was seen; None when none was."""
    of_it = [each.seconds for each in memory.startups.values() if each.revision == revision]
    found = of_it or [each.seconds for each in memory.startups.values()]
    return median(found) if found else None


def startup_status(memory: Memory, revision: str) -> StartupStatus | None:
    """What status tells of the start-ups of a revision, or None when none was seen."""
    of_it = [each.seconds for each in memory.startups.values() if each.revision == revision]
    return StartupStatus(seconds=round(median(of_it)), pods=len(of_it), revision=revision) if of_it else None


def remembered_startups(told: StartupStatus | None) -> Mapping[str, Startup]:
    """The start-ups that a status tells of, as far as their median goes."""
    return {} if told is None else {f"earlier-{n}": Startup(told.revision, told.seconds) for n in range(told.pods)}
