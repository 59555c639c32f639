# SPDX-License-Identifier: Apache-2.0
"""Demand and capacity of a service in tokens per second, by phase, for people and dashboards.

The numbers that decisions use are theirs; these are the same signals in units that everyone knows.
"""

from math import floor, log10

from gearshift.api.v1alpha1.status import LoadStatus, PhaseLoad
from gearshift.api.vocabulary import Role
from gearshift.policy.capacity import remembered
from gearshift.policy.demand import computed
from gearshift.policy.fleet import Fleet
from gearshift.policy.history import moment
from gearshift.policy.plan import Memory
from gearshift.policy.snapshot import PodView, Signal, Snapshot

REWRITE_SECONDS = 60.0
MOVED_SHARE = 0.25
PROBES_TOKENS_PER_SECOND = 10.0
"""What health checks and probes may amount to: no demand that is worth a write."""
_PHASES = {Role.PREFILL: Signal.PROMPT_TOKENS, Role.DECODE: Signal.GENERATION_TOKENS}


def load_status(
    snapshot: Snapshot, memory: Memory, fleet: Fleet, source: str, previous: LoadStatus | None
) -> LoadStatus:
    """Load as status tells it.

    | earlier load | now | result |
    |---|---|---|
    | none | any | now |
    | any | a demand or capacity that was not known is, or one that was is not; or another source | now |
    | written less than `REWRITE_SECONDS` ago | else | the earlier one |
    | older | none of them differs by more than `MOVED_SHARE` | the earlier one |
    | older | one does | now |

    ``source`` says where `Snapshot.rates` come from, or what is not known of them.
    """
    now = _now(snapshot, memory, fleet, source)
    if previous is None:
        return now
    pairs = list(zip(_numbers(previous), _numbers(now), strict=True))
    changed = previous.capacity_from != now.capacity_from
    if changed or any((before is None) is not (after is None) for before, after in pairs):
        return now
    recent = snapshot.at - previous.at.timestamp() < REWRITE_SECONDS
    return previous if recent or not any(_differ(*pair) for pair in pairs) else now


def _now(snapshot: Snapshot, memory: Memory, fleet: Fleet, source: str) -> LoadStatus:
    hits = snapshot.metrics.value(Signal.PREFIX_HITS, _scope(snapshot, Role.PREFILL))
    seen = not snapshot.rates and snapshot.spec.disaggregated
    return LoadStatus(
        prefill=_phase(snapshot, memory, fleet, Role.PREFILL),
        decode=_phase(snapshot, memory, fleet, Role.DECODE),
        prefix_hit_percent=None if hits is None else round(100 * hits),
        capacity_from=(f"pods that were seen to saturate; {source}" if seen else source)[:253],
        at=moment(snapshot.at),
    )


def _scope(snapshot: Snapshot, phase: Role) -> Role | None:
    """Scope of the readings of a phase: its role where roles are split, else the whole service."""
    return phase if snapshot.spec.disaggregated else None


def demand(snapshot: Snapshot, phase: Role) -> float | None:
    """Tokens per second that a phase is asked for; prompt tokens without those of the prefix cache. None: unknown."""
    scope = _scope(snapshot, phase)
    tokens = snapshot.metrics.value(_PHASES[phase], scope)
    if tokens is None or phase is Role.DECODE:
        return tokens
    return computed(snapshot, tokens, scope)


def capacity(snapshot: Snapshot, memory: Memory, fleet: Fleet, phase: Role) -> float | None:
    """Tokens per second that the serving pods of a phase could do; None when that of one of them is not known."""
    pods = [pod for pod in fleet.serving if not snapshot.spec.disaggregated or pod.role in (phase, Role.UNIFIED)]
    found = [_of_pod(snapshot, memory, pod, phase) for pod in pods]
    known = [each for each in found if each is not None]
    return sum(known) if len(known) == len(found) else None


def _of_pod(snapshot: Snapshot, memory: Memory, pod: PodView, phase: Role) -> float | None:
    rates = snapshot.rates.get(pod.layout)
    if rates is None:
        return remembered(memory, phase, pod.layout, snapshot) if snapshot.spec.disaggregated else None
    if phase is Role.PREFILL:
        return rates.prefill_tokens_per_second
    share = rates.share(snapshot.spec.policy.objectives.itl.seconds, 1.0)
    return share / rates.sequence_seconds if rates.sequence_seconds > 0 else None


def _phase(snapshot: Snapshot, memory: Memory, fleet: Fleet, phase: Role) -> PhaseLoad:
    return PhaseLoad(
        demand_tokens_per_second=_rounded(demand(snapshot, phase)),
        capacity_tokens_per_second=_rounded(capacity(snapshot, memory, fleet, phase)),
    )


def _rounded(value: float | None) -> int | None:
    """Two digits of a number that is at least 0."""
    if value is None or value < 1:
        return None if value is None else round(value)
    return int(round(value, 1 - floor(log10(value))))


def _numbers(load: LoadStatus) -> list[int | None]:
    phases = (load.prefill, load.decode)
    return [number for each in phases for number in (each.demand_tokens_per_second, each.capacity_tokens_per_second)]


def _differ(before: int | None, now: int | None) -> bool:
    if before is None or now is None:
        return False
    return abs(before - now) > max(MOVED_SHARE * max(before, now), PROBES_TOKENS_PER_SECOND)
