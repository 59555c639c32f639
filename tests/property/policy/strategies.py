# SPDX-License-Identifier: Apache-2.0
"""Services, fleets, readings and memories at random, broken and unlikely ones included."""

from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import strategies as st

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import BridgePhase, Layout, PodPhase, Role, TransitionKind
from gearshift.policy.plan import Bridge, Capacity, Memory, Need, ScaleMemory
from gearshift.policy.rates import EngineRates
from gearshift.policy.samples import Sample
from gearshift.policy.snapshot import InFlight, Metrics, PodView, Reading, Signal, Snapshot
from gearshift.policy.targets import role_targets

NOW = 50_000.0
LAYOUT_SETS = (("TP",), ("TP", "DP"), ("DP", "SP"), ("TP", "DP", "Shift"), ("SP", "Shift"))
SCOPES = (None, *Role)
AGES = st.sampled_from([5000.0, 100.0, 31.0, 29.0, 0.0])


@st.composite
def role_entries(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Roles of a spec, with floors and ceilings that the API would accept."""
    names = draw(st.sampled_from([("Unified",), ("Prefill", "Decode"), ("Unified", "Prefill", "Decode")]))
    entries = []
    for name in names:
        replicas = draw(st.sampled_from([2, 3, 1, 4, 3, 2, 2, 0]))
        entry: dict[str, Any] = {"name": name, "replicas": replicas}
        if draw(st.booleans()):
            entry["min"] = draw(st.integers(0, replicas))
        if draw(st.booleans()):
            entry["max"] = replicas + draw(st.integers(0, 3))
        entries.append(entry)
    return entries


@st.composite
def specs(draw: st.DrawFn, actuation: str | None = None, overrides: bool = True) -> InferenceServiceSpec:
    """A valid spec."""
    layouts = draw(st.sampled_from(LAYOUT_SETS))
    roles = draw(role_entries())
    body: dict[str, Any] = {
        "model": {"uri": "hf://org/model"},
        "engine": {"kind": "Simulated"},
        "parallelism": {"layouts": layouts},
        "roles": roles,
        "policy": {"actuation": actuation or draw(st.sampled_from(["Auto", "Approve", "Advisory"]))},
    }
    floors = sum(entry.get("min", min(1, entry["replicas"])) for entry in roles)
    if draw(st.integers(0, 2)) == 2:
        body["replicas"] = draw(st.one_of(st.just(0), st.integers(floors, floors + 6)))
    if overrides and draw(st.integers(0, 3)) == 3:
        order = draw(st.sampled_from([("layout", name) for name in layouts] + [("role", e["name"]) for e in roles]))
        until = draw(st.sampled_from(["1970-01-01T00:00:00Z", "2030-01-01T00:00:00Z"]))
        body["override"] = {order[0]: order[1], "until": until}
    return InferenceServiceSpec.model_validate(body)


def _healthy(ordinal: int) -> st.SearchStrategy[PodView]:
    return st.builds(
        PodView,
        name=st.just(f"s-{ordinal}"),
        uid=st.just(f"u-{ordinal}"),
        ordinal=st.just(ordinal),
        revision=st.just("new"),
        role=st.sampled_from(Role),
        layout=st.sampled_from(Layout),
        epoch=st.integers(0, 2),
        phase=st.just(PodPhase.SERVING),
        ready=st.just(True),
        created_at=st.just(NOW - 5000),
        since=AGES.map(lambda age: NOW - age),
        layouts=st.sampled_from([tuple(Layout), (Layout.TP,)]),
        running=st.integers(0, 9),
    )


def _troubled(view: PodView) -> st.SearchStrategy[PodView]:
    return st.builds(
        partial(replace, view),
        revision=st.sampled_from(["new", "old"]),
        phase=st.sampled_from(PodPhase),
        ready=st.booleans(),
        deleting=st.booleans(),
        failed=st.booleans(),
        node_lost=st.booleans(),
        created_at=AGES.map(lambda age: NOW - age),
    )


PODS = [_healthy(ordinal) for ordinal in range(10)]
ANY_PODS = [view | view.flatmap(_troubled) for view in PODS]


@st.composite
def any_fleets(draw: st.DrawFn) -> tuple[PodView, ...]:
    """Pods with distinct ordinals, in any state and order, whatever the spec asks for."""
    ordinals = draw(st.lists(st.integers(0, 9), unique=True, max_size=7))
    return tuple(draw(ANY_PODS[ordinal]) for ordinal in ordinals)


@st.composite
def settled_fleets(draw: st.DrawFn, spec: InferenceServiceSpec) -> tuple[PodView, ...]:
    """As many serving pods as the spec asks for, each in a role and layout of it; at times one is in trouble."""
    roles = [role for role, count in role_targets(spec).items() for _ in range(count)][: len(PODS)]
    swapped = draw(st.integers(0, len(roles)))
    roles[:swapped] = draw(st.permutations(roles[:swapped]))
    layouts = draw(st.lists(st.sampled_from(spec.parallelism.layouts), min_size=len(roles), max_size=len(roles)))
    fleet = [
        replace(draw(PODS[ordinal]), role=role, layout=layout)
        for ordinal, (role, layout) in enumerate(zip(roles, layouts, strict=True))
    ]
    if fleet and draw(st.integers(0, 3)) == 3:
        fleet[0] = draw(_troubled(fleet[0]))
    return tuple(fleet)


UNKNOWN = Reading(None, why="no series")
QUIET = Reading(None, NOW, why="no requests in the window", quiet=True)
_SHARES, _SECONDS = (0.0, 0.3, 0.6, 0.92), (0.001, 0.02, 0.049, 0.06, 0.5, 1.4, 1.6, 30.0)
_COUNTS = (0.0, 0.4, 3.0, 17.0, 90.0, 5000.0)


def _readings(signal: Signal) -> list[Reading]:
    if signal is Signal.KV_USAGE:
        return [Reading(value, NOW, 1) for value in _SHARES]
    if signal in (Signal.TTFT_P90, Signal.ITL_P90):
        return [QUIET, *(Reading(value, NOW, 1) for value in _SECONDS)]
    return [Reading(value, NOW, 1) for value in _COUNTS]


def metric_sets(unknown: bool = True) -> st.SearchStrategy[Metrics]:
    """Readings of every scope; with ``unknown`` some have no value."""
    keys = [(signal, scope) for scope in SCOPES for signal in Signal]
    known = st.fixed_dictionaries({key: st.sampled_from(_readings(key[0])) for key in keys})
    if not unknown:
        return known.map(Metrics)
    blind: st.SearchStrategy[set[tuple[Signal, Role | None]]] = st.just(set()) | st.sets(
        st.sampled_from(keys), max_size=2
    )
    return st.builds(lambda values, lost: Metrics({**values, **dict.fromkeys(lost, UNKNOWN)}), known, blind)


METRICS = metric_sets()
RATES = {layout: EngineRates(3000.0, 0.02, 0.0002, 0.5) for layout in Layout}


KEYS = [f"Layout:{layout}" for layout in Layout] + ["Role:Prefill", "Role:Decode", "Role:Unified", "Role:Split"]
CAPACITIES = [f"Service/{layout}" for layout in Layout] + ["Prefill/TP", "Decode/TP", "Decode/DP", "Unified/TP"]


def _evidence_without(keys: set[str]) -> dict[str, float]:
    return {key: NOW - 600 for key in KEYS if key not in keys}


def memories() -> st.SearchStrategy[Memory]:
    """Any memory; evidence is mostly old enough."""
    stamps = AGES.map(lambda age: NOW - age)
    capacity = st.builds(Capacity, st.sampled_from([1.0, 50.0, 4000.0]), stamps)
    return st.builds(
        Memory,
        started_at=st.sampled_from([5000.0, 600.0, 40.0, 20.0]).map(lambda age: NOW - age),
        last_transition_at=st.none() | stamps,
        transition_at=st.dictionaries(st.sampled_from([f"s-{n}" for n in range(10)]), stamps, max_size=3),
        evidence_since=st.sets(st.sampled_from(KEYS), max_size=2).map(_evidence_without),
        capacity=st.dictionaries(st.sampled_from(CAPACITIES), capacity, max_size=3),
        scale=st.none() | scale_memories(),
        bridges=bridge_memories(),
        slow_transfers_at=st.none() | stamps,
    )


@st.composite
def bridge_memories(draw: st.DrawFn) -> tuple[Bridge, ...]:
    """At times a bridge between two of the pods."""
    if draw(st.integers(0, 3)) < 3:
        return ()
    one, other = draw(st.lists(st.integers(0, 9), min_size=2, max_size=2, unique=True))
    roles = draw(st.permutations([Role.PREFILL, Role.DECODE]))
    phase = draw(st.sampled_from(BridgePhase))
    return (Bridge(f"s-{one}", f"u-{one}", roles[0], roles[1], f"s-{other}", f"u-{other}", phase),)


def scale_memories() -> st.SearchStrategy[ScaleMemory]:
    """Any memory of scaling, mostly rested."""
    stamps = st.none() | AGES.map(lambda age: NOW - age)
    need = st.builds(Need, st.sampled_from([NOW - 60, NOW - 30]), *[st.integers(1, 8)] * 3)
    sample = st.builds(Sample, st.sampled_from([NOW - 60, NOW - 30, NOW - 10]), st.floats(0, 9), st.integers(0, 99))
    return st.builds(
        ScaleMemory,
        desired=st.integers(0, 9),
        wanted=st.integers(1, 9),
        needs=st.lists(need, max_size=2).map(lambda needs: tuple(sorted(needs, key=lambda each: each.at))),
        samples=st.lists(sample, max_size=3).map(lambda each: tuple(sorted(each, key=lambda one: one.at))),
        grown_at=stamps,
        shrunk_at=stamps,
        regretted_at=stamps,
        regrets=st.integers(0, 3),
    )


@st.composite
def snapshots(
    draw: st.DrawFn,
    service: st.SearchStrategy[InferenceServiceSpec] | None = None,
    readings: st.SearchStrategy[Metrics] | None = None,
) -> Snapshot:
    """Any moment of any service."""
    spec = draw(service if service is not None else specs())
    settled = draw(st.integers(0, 3)) > 0
    fleet = draw(settled_fleets(spec) if settled else any_fleets())
    moving = draw(st.integers(0, 9)) == 9 and fleet
    flights = (InFlight("t", fleet[0].name, TransitionKind.LAYOUT, "DP", NOW - 5),) if moving else ()
    return Snapshot(
        at=NOW,
        namespace="ns",
        name="s",
        uid="service",
        generation=1,
        spec=spec,
        revision="new",
        pods=fleet,
        metrics=draw(readings if readings is not None else METRICS),
        in_flight=flights,
        approved=None,
        hold=draw(st.integers(0, 9)) == 9,
        rates=draw(st.sampled_from([{}, RATES])),
    )
