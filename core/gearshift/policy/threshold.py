# SPDX-License-Identifier: Apache-2.0
"""The threshold of layout Shift: a changed spec reaches running pods live, one after the other."""

from gearshift.api import reasons
from gearshift.api.vocabulary import Layout, TransitionKind
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Memory, Transit
from gearshift.policy.snapshot import PodView, Snapshot
from gearshift.policy.verdict import STEADY, Source, Verdict, by_rest


def threshold_verdict(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Verdict:
    """Transitions of the serving pods whose threshold is not the spec's.

    | spec.parallelism.shiftThresholdTokens | pod | result |
    |---|---|---|
    | left out | any | as it is: the engine has measured its own |
    | n | layout Shift, holds another threshold | a transition to n |
    | n | layout Shift, threshold unknown | as it is |
    | n | another layout | as it is: the order that leads to Shift carries n |
    """
    wanted = snapshot.spec.parallelism.shift_threshold_tokens
    if wanted is None:
        return Verdict(hold=STEADY)
    candidates = tuple(
        Transit(pod.name, TransitionKind.LAYOUT, Layout.SHIFT.value, pod.epoch, reasons.SHIFT_THRESHOLD, wanted)
        for pod in by_rest((pod for pod in fleet.serving if _differs(pod, wanted)), memory)
    )
    message = f"spec.parallelism.shiftThresholdTokens is {wanted}"
    return Verdict(candidates, None if candidates else STEADY, message=message, source=Source.SPEC)


def _differs(pod: PodView, wanted: int) -> bool:
    return pod.layout is Layout.SHIFT and pod.shift_threshold_tokens not in (None, wanted)
