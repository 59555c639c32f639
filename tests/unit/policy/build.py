# SPDX-License-Identifier: Apache-2.0
"""Short ways to write services, pods, readings and snapshots for tests of the policy."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.policy.plan import Memory
from gearshift.policy.snapshot import Metrics, PodView, Reading, Signal, Snapshot

NOW = 100_000.0
LONG_AGO = NOW - 10_000
LAYOUTS = (Layout.TP, Layout.DP)


def spec(**fields: Any) -> InferenceServiceSpec:
    """A service of one unified pod that may be TP or DP; ``fields`` are wire names of the spec."""
    base: dict[str, Any] = {"model": {"uri": "hf://org/model"}, "parallelism": {"layouts": ["TP", "DP"]}}
    return InferenceServiceSpec.model_validate({**base, **fields})


def split(prefill: int, decode: int, **fields: Any) -> InferenceServiceSpec:
    """A service with roles split."""
    roles = [{"name": "Prefill", "replicas": prefill}, {"name": "Decode", "replicas": decode}]
    return spec(**{"roles": roles, **fields})


def pod(ordinal: int, role: Role = Role.UNIFIED, layout: Layout = Layout.TP, **changes: Any) -> PodView:
    """A pod that has served for long."""
    view = PodView(
        name=f"chat-{ordinal}",
        uid=f"uid-{ordinal}",
        ordinal=ordinal,
        revision="new",
        role=role,
        layout=layout,
        epoch=0,
        phase=PodPhase.SERVING,
        ready=True,
        created_at=LONG_AGO,
        since=LONG_AGO,
        layouts=LAYOUTS,
    )
    return replace(view, **changes)


def starting(ordinal: int, role: Role = Role.UNIFIED, **changes: Any) -> PodView:
    """A pod that does not serve yet."""
    return pod(ordinal, role, **{"phase": PodPhase.STARTING, "ready": False, "since": NOW - 5, **changes})


def pods(prefill: int, decode: int) -> tuple[PodView, ...]:
    """A fleet with roles split: the prefill pods first."""
    roles = [Role.PREFILL] * prefill + [Role.DECODE] * decode
    return tuple(pod(ordinal, role) for ordinal, role in enumerate(roles))


QUIET = Reading(None, NOW, 0, "the query", "no requests in the window", quiet=True)
UNKNOWN = Reading(None, query="the query", why="no series: too few pods report")


def metrics(role: Role | None = None, /, **values: float | Reading) -> Metrics:
    """Readings of one scope, all zero or quiet where not given; keys are names of `Signal`."""
    idle = {signal: QUIET if signal in (Signal.TTFT_P90, Signal.ITL_P90) else Reading(0.0, NOW, 1) for signal in Signal}
    given = {
        Signal[name.upper()]: value if isinstance(value, Reading) else Reading(value, NOW, 1)
        for name, value in values.items()
    }
    return Metrics({(signal, role): reading for signal, reading in {**idle, **given}.items()})


def both(*parts: Metrics) -> Metrics:
    """Readings of several scopes together; the whole service is idle where not given."""
    merged = dict(metrics().readings)
    for part in parts:
        merged.update(part.readings)
    return Metrics(merged)


def idle() -> Metrics:
    """Everything known, nothing happening."""
    return both(metrics(Role.PREFILL), metrics(Role.DECODE))


def snapshot(views: Iterable[PodView] = (), service: InferenceServiceSpec | None = None, **changes: Any) -> Snapshot:
    """A snapshot at `NOW` of an idle service; the spec asks for as many unified pods as there are, unless given."""
    fleet = tuple(views)
    wanted = service or spec(replicas=len(fleet))
    base = Snapshot(NOW, "prod", "chat", "service-uid", 1, wanted, "new", fleet, idle())
    return replace(base, **changes)


def seasoned(*wants: str, **changes: Any) -> Memory:
    """Memory of an operator that has watched for long, and has wanted ``wants`` for long."""
    return replace(Memory(LONG_AGO, evidence_since=dict.fromkeys(wants, LONG_AGO)), **changes)
