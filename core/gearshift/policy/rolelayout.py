# SPDX-License-Identifier: Apache-2.0
"""Layouts that the spec gives to roles: such as one for throughput to prefill and one for latency to decode.

Pods of such a role take its layout whatever the load is; the layout that load asks for is that of the other pods.
"""

from dataclasses import replace

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, Role, TransitionKind
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Hold, Memory, Transit
from gearshift.policy.snapshot import PodView, Snapshot
from gearshift.policy.verdict import STEADY, Source, Verdict, by_rest


def pinned(spec: InferenceServiceSpec, role: Role) -> Layout | None:
    """Layout that the spec gives to a role, or None."""
    entry = spec.role(role)
    return None if entry is None else entry.layout


def free(spec: InferenceServiceSpec, fleet: Fleet) -> Fleet:
    """The fleet, serving only by the pods whose layout is for load to say."""
    return replace(fleet, serving=tuple(pod for pod in fleet.serving if pinned(spec, pod.role) is None))


def stray(spec: InferenceServiceSpec, pod: PodView) -> bool:
    """The pod has another layout than the spec gives to its role."""
    return pinned(spec, pod.role) not in (None, pod.layout)


def role_layout_verdict(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Verdict:
    """Transitions of the serving pods that have another layout than their role's.

    | layout of the role | pod | result |
    |---|---|---|
    | left out | any | as it is |
    | L | has L | as it is |
    | L | has another one, can switch to L | a transition to L |
    | L | has another one, can't | Hold NotCapable, unless another pod can |
    """
    strays = by_rest((pod for pod in fleet.serving if stray(snapshot.spec, pod)), memory)
    if not strays:
        return Verdict(hold=STEADY)
    candidates = tuple(found for pod in strays if (found := _towards(snapshot.spec, pod)) is not None)
    names = ", ".join(pod.name for pod in strays[:3])
    hold = None if candidates else Hold(reasons.NOT_CAPABLE, f"{names} can't switch to the layout of the role")
    return Verdict(candidates, hold, message=f"roles have layouts of their own: {names}", source=Source.SPEC)


def _towards(spec: InferenceServiceSpec, pod: PodView) -> Transit | None:
    target = pinned(spec, pod.role)
    if target is None or target not in pod.layouts:
        return None
    return Transit(pod.name, TransitionKind.LAYOUT, target.value, pod.epoch, reasons.ROLE_LAYOUT)
