# SPDX-License-Identifier: Apache-2.0
"""Load of the whole service, as far as the choice of a layout needs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gearshift.api import reasons
from gearshift.policy import tuning
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Hold
from gearshift.policy.pressure import known
from gearshift.policy.snapshot import Signal, Snapshot
from gearshift.policy.verdict import missing, number


class Load(StrEnum):
    """Bands of load. Between Calm and Busy lies a wide band in which layouts stay as they are."""

    CALM = "Calm"  # nothing queues
    BETWEEN = "Between"
    BUSY = "Busy"  # requests wait for compute
    KV_BOUND = "KvBound"  # requests wait for KV cache


@dataclass(frozen=True, slots=True)
class ServiceLoad:
    """Band and the numbers behind it, per serving pod."""

    load: Load
    waiting: float
    running: float
    kv_usage: float
    inputs: Mapping[str, str] = field(default_factory=dict)


def service_load(snapshot: Snapshot, fleet: Fleet) -> ServiceLoad | Hold:
    """Band of load of the service.

    | waiting / pod | TTFT p90 | KV use | load |
    |---|---|---|---|
    | >= 4 | any | < 0.9 | Busy |
    | >= 1 | above its objective | < 0.9 | Busy |
    | >= 1 | unknown | < 0.9 | Hold MetricsMissing |
    | as Busy | | >= 0.9 | KvBound |
    | <= 0.5 | any | any | Calm |
    | else | | | Between |
    | unknown | or | unknown | Hold MetricsMissing |
    """
    if not fleet.serving:
        return Hold(reasons.NO_SERVING_PODS, "no pod serves")
    values = known(snapshot.metrics, (Signal.WAITING, Signal.RUNNING, Signal.KV_USAGE))
    if isinstance(values, Hold):
        return values
    waiting, running = (values[signal] / len(fleet.serving) for signal in (Signal.WAITING, Signal.RUNNING))
    late = _late(snapshot, waiting)
    if isinstance(late, Hold):
        return late
    kv_usage = values[Signal.KV_USAGE]
    inputs = {
        "waitingPerPod": number(waiting),
        "runningPerPod": number(running),
        "kvUsage": number(kv_usage),
    }
    return ServiceLoad(_band(waiting, kv_usage, late), waiting, running, kv_usage, inputs)


def _late(snapshot: Snapshot, waiting: float) -> bool | Hold:
    """Whether TTFT misses its objective; asked only where the answer matters."""
    if not tuning.QUEUE_SOME <= waiting < tuning.QUEUE_HIGH:
        return False
    reading = snapshot.metrics.reading(Signal.TTFT_P90)
    if reading.value is None:
        return False if reading.quiet else missing(snapshot.metrics, Signal.TTFT_P90)
    return reading.value > snapshot.spec.policy.objectives.ttft.seconds


def _band(waiting: float, kv_usage: float, late: bool) -> Load:
    if waiting >= tuning.QUEUE_HIGH or late:
        return Load.KV_BOUND if kv_usage >= tuning.KV_FULL else Load.BUSY
    return Load.CALM if waiting <= tuning.QUEUE_LOW else Load.BETWEEN
