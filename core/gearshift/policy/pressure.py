# SPDX-License-Identifier: Apache-2.0
"""How hard the service and each role work, as numbers in which 1 means: at its limit."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gearshift.api import reasons
from gearshift.api.vocabulary import Role
from gearshift.policy import tuning
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Hold
from gearshift.policy.snapshot import Metrics, Signal, Snapshot
from gearshift.policy.verdict import missing, number


@dataclass(frozen=True, slots=True)
class Pressure:
    """Pressure of one role: 1 is the limit, `tuning.PRESSURE_CAP` the most. ``queueing``: requests wait for it."""

    value: float
    queueing: bool
    inputs: Mapping[str, str] = field(default_factory=dict)


def known(metrics: Metrics, signals: tuple[Signal, ...], role: Role | None = None) -> dict[Signal, float] | Hold:
    """Values of ``signals``, or why one of them is unknown. A quiet quantile counts as 0: no one waited."""
    values: dict[Signal, float] = {}
    for signal in signals:
        reading = metrics.reading(signal, role)
        if reading.value is None and not reading.quiet:
            return missing(metrics, signal, role)
        values[signal] = reading.value if reading.value is not None else 0.0
    return values


def prefill_pressure(snapshot: Snapshot, fleet: Fleet) -> Pressure | Hold:
    """Worst of queue per prefill pod against `tuning.QUEUE_HIGH` and TTFT against its objective.

    | waiting / pod | TTFT p90 | pressure |
    |---|---|---|
    | 0 | quiet | 0 |
    | 4 | half the objective | 1 |
    | 2 | twice the objective | 2 |
    | unknown | any | Hold MetricsMissing |
    """
    values = _values(snapshot, fleet, Role.PREFILL, (Signal.WAITING, Signal.TTFT_P90))
    if isinstance(values, Hold):
        return values
    queue = values[Signal.WAITING] / fleet.serving_roles[Role.PREFILL]
    late = values[Signal.TTFT_P90] / _objective(snapshot.spec.policy.objectives.ttft.seconds)
    inputs = {"prefillWaitingPerPod": number(queue), "prefillTtftP90": f"{number(values[Signal.TTFT_P90])}s"}
    return _pressure("prefillPressure", max(queue / tuning.QUEUE_HIGH, late), queue, inputs)


def decode_pressure(snapshot: Snapshot, fleet: Fleet) -> Pressure | Hold:
    """Worst of inter-token latency against its objective, KV use against `tuning.KV_FULL` and queue per decode pod.

    | ITL p90 | KV use | waiting / pod | pressure |
    |---|---|---|---|
    | quiet | 0 | 0 | 0 |
    | half the objective | 0.9 | 0 | 1 |
    | twice the objective | 0.1 | 0 | 2 |
    | any | unknown | any | Hold MetricsMissing |
    """
    signals = (Signal.WAITING, Signal.RUNNING, Signal.KV_USAGE, Signal.ITL_P90)
    values = _values(snapshot, fleet, Role.DECODE, signals)
    if isinstance(values, Hold):
        return values
    pods = fleet.serving_roles[Role.DECODE]
    queue = values[Signal.WAITING] / pods
    late = values[Signal.ITL_P90] / _objective(snapshot.spec.policy.objectives.itl.seconds)
    inputs = {
        "decodeWaitingPerPod": number(queue),
        "decodeRunningPerPod": number(values[Signal.RUNNING] / pods),
        "decodeKvUsage": number(values[Signal.KV_USAGE]),
        "decodeItlP90": f"{number(values[Signal.ITL_P90])}s",
    }
    worst = max(queue / tuning.QUEUE_HIGH, late, values[Signal.KV_USAGE] / tuning.KV_FULL)
    return _pressure("decodePressure", worst, queue, inputs)


def _values(snapshot: Snapshot, fleet: Fleet, role: Role, signals: tuple[Signal, ...]) -> dict[Signal, float] | Hold:
    if not fleet.serving_roles.get(role):
        return Hold(reasons.NO_SERVING_PODS, f"no {role} pod serves")
    return known(snapshot.metrics, signals, role)


def _objective(seconds: float) -> float:
    return max(seconds, 0.001)


def _pressure(name: str, worst: float, queue: float, inputs: dict[str, str]) -> Pressure:
    value = min(worst, tuning.PRESSURE_CAP)
    return Pressure(value, queue >= tuning.QUEUE_SOME, {name: number(value), **inputs})
