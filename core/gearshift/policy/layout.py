# SPDX-License-Identifier: Apache-2.0
"""Which layout the pods of a service should have."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gearshift.api import reasons
from gearshift.api.vocabulary import Layout, TransitionKind
from gearshift.policy import tuning
from gearshift.policy.capacity import rate_per_pod, remembered
from gearshift.policy.demand import computed
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import Hold, Memory, Transit
from gearshift.policy.rolelayout import free
from gearshift.policy.service import Load, ServiceLoad, service_load
from gearshift.policy.snapshot import PodView, Signal, Snapshot
from gearshift.policy.verdict import STEADY, Verdict, by_rest, number

THROUGHPUT_ORDER = (Layout.SHIFT, Layout.DP, Layout.SP, Layout.TP)
LATENCY_ORDER = (Layout.SHIFT, Layout.TP, Layout.SP, Layout.DP)


@dataclass(frozen=True, slots=True)
class Want:
    """Layout that the service should have now; None: the one that each pod has."""

    target: Layout | None
    reason: str
    message: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)


def want(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Want | Hold:
    """Layout by load.

    | load | remembered capacity of the latency layout | target |
    |---|---|---|
    | unknown | any | Hold MetricsMissing |
    | any | any, and the first of both orders is the same (Shift is allowed, or one layout) | that one |
    | Busy | any | first allowed of Shift, DP, SP, TP that reads the prompts in time: see `in_time` |
    | Calm | known, present tokens/s a pod <= 0.6 of it | first allowed of Shift, TP, SP, DP |
    | Calm | known, present tokens/s a pod above that | as it is |
    | Calm | unknown, running <= 16 a pod and KV use <= 0.5 | first allowed of Shift, TP, SP, DP |
    | Calm | unknown, else | as it is |
    | Between | any | as it is |
    | KvBound | any | as it is: replicas hold the weights once each, so DP has the least room for KV |
    """
    load = service_load(snapshot, fleet)
    if isinstance(load, Hold):
        return load
    fast, quick = _allowed(snapshot, THROUGHPUT_ORDER)[0], _allowed(snapshot, LATENCY_ORDER)[0]
    if fast is quick:
        return Want(fast, reasons.PREFERRED_LAYOUT, f"{fast} is the best allowed layout at any load", load.inputs)
    if load.load is Load.BUSY:
        return _busy(snapshot, load)
    if load.load is Load.KV_BOUND:
        return Want(None, reasons.KV_BOUND, f"KV cache is {number(load.kv_usage * 100)} % full", load.inputs)
    if load.load is Load.BETWEEN:
        return Want(None, reasons.STEADY, "", load.inputs)
    return _calm(snapshot, memory, fleet, load, quick)


def _busy(snapshot: Snapshot, load: ServiceLoad) -> Want:
    lengths = prompt_tokens(snapshot)
    order = _allowed(snapshot, THROUGHPUT_ORDER)
    target = next((layout for layout in order if in_time(snapshot, layout, lengths)), order[0])
    message = f"{number(load.waiting)} requests wait per pod"
    if lengths is None:
        return Want(target, reasons.QUEUEING, message, load.inputs)
    inputs = {**load.inputs, "promptTokens": number(lengths)}
    if target is not order[0]:
        message += f", and {order[0]} reads prompts of {number(lengths)} tokens too slowly"
    return Want(target, reasons.QUEUEING, message, inputs)


def prompt_tokens(snapshot: Snapshot) -> float | None:
    """Tokens of a prompt in the mean, those in the prefix cache left out; None where that is unknown."""
    tokens, requests = (snapshot.metrics.value(signal) for signal in (Signal.PROMPT_TOKENS, Signal.REQUESTS))
    return computed(snapshot, tokens) / requests if tokens is not None and requests else None


def in_time(snapshot: Snapshot, layout: Layout, prompt: float | None) -> bool:
    """Whether an idle pod in a layout reads a prompt within the TTFT objective.

    In DP one accelerator reads a whole prompt, in the other layouts all of them do.

    | length of prompts | rates of the layout | one replica reads such a prompt within the objective | in time |
    |---|---|---|---|
    | unknown, or | unknown | | yes |
    | known | known | yes | yes |
    | known | known | no | no |
    """
    rates = snapshot.rates.get(layout)
    if prompt is None or rates is None:
        return True
    replicas = snapshot.spec.pod.accelerators if layout is Layout.DP else 1
    seconds = prompt * replicas / rates.prefill_tokens_per_second
    return seconds <= snapshot.spec.policy.objectives.ttft.seconds


def _calm(snapshot: Snapshot, memory: Memory, fleet: Fleet, load: ServiceLoad, quick: Layout) -> Want | Hold:
    capacity = remembered(memory, None, quick, snapshot)
    if capacity is None:
        light = load.running <= tuning.RUNNING_LOW and load.kv_usage <= tuning.KV_LOW
        message = f"{number(load.running)} requests run per pod and none waits"
        return Want(quick, reasons.LIGHT_LOAD, message, load.inputs) if light else _stay(load, reasons.STEADY, "")
    rate = rate_per_pod(snapshot, fleet, None)
    if isinstance(rate, Hold):
        return rate
    message = f"{number(rate)} tokens/s per pod; {quick} saturated at {number(capacity)}"
    inputs = {**load.inputs, "tokensPerSecondPerPod": number(rate), f"capacity{quick}": number(capacity)}
    if rate <= tuning.LIGHT_SHARE * capacity:
        return Want(quick, reasons.LIGHT_LOAD, message, inputs)
    return Want(None, reasons.KNOWN_CAPACITY, message, inputs)


def _stay(load: ServiceLoad, reason: str, message: str) -> Want:
    return Want(None, reason, message, load.inputs)


def _allowed(snapshot: Snapshot, order: tuple[Layout, ...]) -> list[Layout]:
    return [layout for layout in order if layout in snapshot.spec.parallelism.layouts]


def evidence_key(target: Layout) -> str:
    """Name under which `Memory.evidence_since` keeps since when a layout has been wanted."""
    return f"{TransitionKind.LAYOUT}:{target}"


def layout_verdict(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Verdict:
    """Transitions that would bring the pods to the wanted layout, best candidate first.

    Pods whose role has a layout of its own in the spec are left out.
    """
    wanted = want(snapshot, memory, fleet)
    if isinstance(wanted, Hold):
        return Verdict(hold=wanted)
    if wanted.target is None:
        settled = wanted.reason == reasons.STEADY or len(snapshot.spec.parallelism.layouts) == 1
        return Verdict(hold=STEADY if settled else Hold(wanted.reason, wanted.message), inputs=wanted.inputs)
    loose = free(snapshot.spec, fleet)
    candidates = towards(wanted.target, loose, memory, wanted.reason)
    others = any(pod.layout is not wanted.target for pod in loose.serving)
    hold = None if candidates else not_capable(wanted.target, loose) if others else STEADY
    return Verdict(candidates, hold, wanted.inputs, evidence_key(wanted.target), wanted.message)


def towards(target: Layout, fleet: Fleet, memory: Memory, reason: str) -> tuple[Transit, ...]:
    """A transition for each serving pod that has another layout and can switch."""
    pods = [pod for pod in fleet.serving if pod.layout is not target and _can(pod, target)]
    return tuple(
        Transit(pod.name, TransitionKind.LAYOUT, target.value, pod.epoch, reason) for pod in by_rest(pods, memory)
    )


def not_capable(target: Layout, fleet: Fleet) -> Hold:
    """No pod that lacks the layout can take it."""
    names = [pod.name for pod in fleet.serving if pod.layout is not target][:3]
    return Hold(reasons.NOT_CAPABLE, f"{', '.join(names)} can't switch to layout {target}")


def _can(pod: PodView, target: Layout) -> bool:
    return target in pod.layouts
