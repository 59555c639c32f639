# SPDX-License-Identifier: Apache-2.0
"""Snapshots as JSON lines: a header with spec and rates, then one line a tick, with all that a decision may read."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind
from gearshift.policy.rates import EngineRates
from gearshift.policy.snapshot import InFlight, Metrics, PodView, Reading, Signal, Snapshot

QUIET: Final = "quiet"


class RecordError(ValueError):
    """A line that is no record. The message names the line."""


def dump(snapshots: Iterable[Snapshot]) -> Iterator[str]:
    """Lines of a recording; all snapshots are of one service."""
    header = True
    for snapshot in snapshots:
        if header:
            yield _line(
                {"spec": snapshot.spec.dump(), "rates": {k.value: _rates(v) for k, v in snapshot.rates.items()}}
            )
            header = False
        yield _line(_snapshot(snapshot))


def load(lines: Iterable[str]) -> Iterator[Snapshot]:
    """Snapshots of a recording.

    Raises:
        RecordError: a line is no record.
    """
    base: Snapshot | None = None
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            if base is None:
                base = _base(row)
            else:
                yield _loaded(base, row)
        except (KeyError, IndexError, TypeError, ValueError, ValidationError) as error:
            raise RecordError(f"line {number}: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _rates(rates: EngineRates) -> list[float]:
    return [
        rates.prefill_tokens_per_second,
        rates.step_seconds,
        rates.sequence_seconds,
        rates.request_seconds,
    ]


def _snapshot(snapshot: Snapshot) -> dict[str, Any]:
    scopes: dict[str, dict[str, Any]] = {}
    for (signal, role), reading in snapshot.metrics.readings.items():
        value = QUIET if reading.quiet else None if reading.value is None else float(f"{reading.value:.4g}")
        scopes.setdefault(role.value if role else "", {})[signal.name] = value
    flights = [[each.id, each.pod, each.kind.value, each.to, each.started_at] for each in snapshot.in_flight]
    return {"at": snapshot.at, "pods": [_pod(pod) for pod in snapshot.pods], "metrics": scopes, "flights": flights}


def _pod(pod: PodView) -> list[Any]:
    return [
        pod.name,
        pod.uid,
        pod.ordinal,
        pod.role.value,
        pod.layout.value,
        pod.epoch,
        pod.phase.value,
        pod.ready,
        round(pod.created_at, 2),
        round(pod.since, 2),
        pod.deleting,
        [layout.value for layout in pod.layouts],
        pod.running,
        pod.waiting,
    ]


def _base(row: dict[str, Any]) -> Snapshot:
    spec = InferenceServiceSpec.model_validate(row["spec"])
    rates = {Layout(layout): EngineRates(*numbers) for layout, numbers in row["rates"].items()}
    return Snapshot(0.0, "recorded", "service", "service", 1, spec, "r", rates=rates)


def _loaded(base: Snapshot, row: dict[str, Any]) -> Snapshot:
    readings = {
        (Signal[name], Role(scope) if scope else None): _reading(value, row["at"])
        for scope, values in row["metrics"].items()
        for name, value in values.items()
    }
    return replace(
        base,
        at=row["at"],
        pods=tuple(_view(pod) for pod in row["pods"]),
        metrics=Metrics(readings),
        in_flight=tuple(InFlight(a, pod, TransitionKind(kind), to, at) for a, pod, kind, to, at in row["flights"]),
    )


def _reading(value: object, at: float) -> Reading:
    if value == QUIET:
        return Reading(None, at, why="no requests in the window", quiet=True)
    if value is None:
        return Reading(None, why="unknown when it was recorded")
    return Reading(float(str(value)), at, 1)


def _view(row: list[Any]) -> PodView:
    name, uid, ordinal, role, layout, epoch, phase, ready, created, since, deleting, layouts, running, waiting = row
    return PodView(
        name=name,
        uid=uid,
        ordinal=ordinal,
        revision="r",
        role=Role(role),
        layout=Layout(layout),
        epoch=epoch,
        phase=PodPhase(phase),
        ready=ready,
        created_at=created,
        since=since,
        deleting=deleting,
        layouts=tuple(Layout(each) for each in layouts),
        running=running,
        waiting=waiting,
    )
