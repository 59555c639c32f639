# SPDX-License-Identifier: Apache-2.0
"""What a layout or a role was seen to carry when it saturated.

Thresholds on queues alone oscillate: the fast layout has no queue, so the slow one looks good again at the same load.
What the slow one carried when it queued is remembered, and it is taken again only for clearly less.
"""

from collections.abc import Mapping

from gearshift.api.vocabulary import Layout, Role
from gearshift.policy import tuning
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Capacity, Hold, Memory
from gearshift.policy.pressure import decode_pressure, known, prefill_pressure
from gearshift.policy.service import Load, ServiceLoad, service_load
from gearshift.policy.snapshot import Signal, Snapshot

_RATE = {Role.PREFILL: Signal.PROMPT_TOKENS, Role.DECODE: Signal.GENERATION_TOKENS}


def key(role: Role | None, layout: Layout) -> str:
    """Where the capacity of a layout (role None) or of a role in a layout is kept."""
    return f"{role or 'Service'}/{layout}"


def remembered(memory: Memory, role: Role | None, layout: Layout, snapshot: Snapshot) -> float | None:
    """Tokens per second and pod, or None when it was not seen or is too old."""
    capacity = memory.capacity.get(key(role, layout))
    horizon = tuning.CAPACITY_WINDOWS * snapshot.spec.policy.window.seconds
    if capacity is None or snapshot.at - capacity.at > horizon:
        return None
    return capacity.tokens_per_second


def rate_per_pod(snapshot: Snapshot, fleet: Fleet, role: Role | None) -> float | Hold:
    """Tokens per second and serving pod: those of its phase for Prefill and Decode, else prompt and generated ones."""
    signals = (_RATE[role],) if role in _RATE else (Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS)
    values = known(snapshot.metrics, signals, role)
    if isinstance(values, Hold):
        return values
    pods = len(fleet.serving) if role is None else fleet.serving_roles.get(role, 0)
    return sum(values.values()) / max(pods, 1)


def learn(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Mapping[str, Capacity]:
    """Capacities after this snapshot.

    | what | learnt when | layout of its serving pods |
    |---|---|---|
    | service | its load is Busy | one and the same |
    | Prefill, Decode | pressure of at least 1 with a queue; for decode also without one | one and the same |
    | Unified, beside split roles | ITL above its objective | one and the same |
    """
    capacities = dict(memory.capacity)
    for role in _saturated(snapshot, fleet):
        layouts = {pod.layout for pod in fleet.serving if role in (None, pod.role)}
        rate = rate_per_pod(snapshot, fleet, role)
        if len(layouts) == 1 and isinstance(rate, float) and rate > 0:
            capacities[key(role, layouts.pop())] = Capacity(rate, snapshot.at)
    return capacities


def _saturated(snapshot: Snapshot, fleet: Fleet) -> list[Role | None]:
    found: list[Role | None] = []
    load = service_load(snapshot, fleet)
    if isinstance(load, ServiceLoad) and load.load is Load.BUSY:
        found.append(None)
    if snapshot.spec.disaggregated:
        prefill, decode = prefill_pressure(snapshot, fleet), decode_pressure(snapshot, fleet)
        if not isinstance(prefill, Hold) and prefill.value >= 1 and prefill.queueing:
            found.append(Role.PREFILL)
        if not isinstance(decode, Hold) and decode.value >= 1:
            found.append(Role.DECODE)
        if snapshot.spec.role(Role.UNIFIED) is not None and _late(snapshot):
            found.append(Role.UNIFIED)
    return found


def _late(snapshot: Snapshot) -> bool:
    """Whether the ITL of Unified pods misses its objective."""
    value = snapshot.metrics.value(Signal.ITL_P90, Role.UNIFIED)
    return value is not None and value > snapshot.spec.policy.objectives.itl.seconds
