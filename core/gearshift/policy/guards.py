# SPDX-License-Identifier: Apache-2.0
"""What may veto a transition, each a small function; a chain is an ordered list, and its first veto wins."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gearshift.api import reasons
from gearshift.api.vocabulary import Layout, Role, TransitionKind
from gearshift.policy import layout, role, tuning
from gearshift.policy.fleet import Fleet
from gearshift.policy.moves import Change, latest_moves, usual_seconds
from gearshift.policy.plan import Hold, Memory, Move, Transit
from gearshift.policy.snapshot import Ended, PodView, Snapshot
from gearshift.policy.targets import ceiling
from gearshift.policy.verdict import Source, number


@dataclass(frozen=True, slots=True)
class Context:
    """What guards look at."""

    snapshot: Snapshot
    memory: Memory
    fleet: Fleet
    pods: Mapping[str, PodView]  # live pods by name
    latest: Mapping[Change, Move]  # of the moves that must not be undone without new evidence
    in_hour: int  # transitions of the last hour, failed ones included

    @classmethod
    def of(cls, snapshot: Snapshot, memory: Memory, fleet: Fleet) -> "Context":
        """Context of one decision."""
        since = snapshot.at - tuning.HOUR_SECONDS
        failed = sum(1 for each in snapshot.ended if each.failed and each.at > since)
        moved = sum(1 for move in memory.moves if move.at > since)
        pods = {pod.name: pod for pod in fleet.live}
        return cls(snapshot, memory, fleet, pods, latest_moves(snapshot, memory), failed + moved)


Guard = Callable[[Context, Transit], Hold | None]


def human_hold(context: Context, _: Transit) -> Hold | None:
    """The hold annotation stops everything that takes a healthy pod out of service, an override too."""
    return Hold(reasons.HUMAN_HOLD, held(context.snapshot)) if context.snapshot.hold else None


def held(snapshot: Snapshot) -> str:
    """What the hold annotation says, in words."""
    return f"the hold annotation is set{': ' + snapshot.hold_note if snapshot.hold_note else ''}"


def rollout_in_progress(context: Context, _: Transit) -> Hold | None:
    """Pods of an older spec will go soon; moving any pod now would cost a drain for nothing."""
    outdated = len(context.fleet.outdated)
    return Hold(reasons.ROLLOUT_IN_PROGRESS, f"{outdated} pods of an older spec remain") if outdated else None


def transition_in_flight(context: Context, _: Transit) -> Hold | None:
    """One transition of a service at a time."""
    moving = sorted(context.fleet.moving)
    return Hold(reasons.TRANSITION_IN_FLIGHT, f"{', '.join(moving[:3])} in transition") if moving else None


def restart_hold(context: Context, _: Transit) -> Hold | None:
    """For one window after the operator began to watch, its evidence is too short."""
    return restart_veto(context.snapshot, context.memory)


def restart_veto(snapshot: Snapshot, memory: Memory) -> Hold | None:
    """As `restart_hold`, for decisions that are no transition."""
    return _not_before(
        snapshot.at, memory.started_at, snapshot.spec.policy.window.seconds, reasons.RESTART_HOLD, "watching began"
    )


def dwell(context: Context, transit: Transit) -> Hold | None:
    """A pod keeps what it has for a while; `PodView.since` also covers its start and a rolled-back transition."""
    seconds = context.snapshot.spec.policy.dwell.seconds
    return _not_before(
        context.snapshot.at, _changed_at(context, transit), seconds, reasons.DWELL, f"{transit.pod} last changed"
    )


def transition_cost(context: Context, transit: Transit) -> Hold | None:
    """A pod keeps what it has long enough that changes take little of its time: see `tuning.COST_SPANS`.

    | changes of this kind | the pod last changed | veto |
    |---|---|---|
    | none committed | any | no |
    | took 4 s | less than 20 s ago | yes |
    | took 4 s | 20 s ago | no |
    """
    cost = usual_seconds(context.snapshot, transit.kind)
    if cost is None:
        return None
    what = f"changes of {transit.kind} take {number(cost)} s; {transit.pod} last changed"
    return _not_before(
        context.snapshot.at, _changed_at(context, transit), tuning.COST_SPANS * cost, reasons.TRANSITION_COST, what
    )


def _changed_at(context: Context, transit: Transit) -> float:
    pod = context.pods[transit.pod]
    return max(context.memory.transition_at.get(pod.name, 0.0), pod.since)


def cooldown(context: Context, _: Transit) -> Hold | None:
    """The service settles between two transitions."""
    last = context.memory.last_transition_at
    if last is None:
        return None
    seconds = context.snapshot.spec.policy.cooldown.seconds
    return _not_before(context.snapshot.at, last, seconds, reasons.COOLDOWN, "the last transition ended")


def backoff(context: Context, transit: Transit) -> Hold | None:
    """After failures of its kind the next try waits, longer each time; a commit of that kind ends it.

    With a cooldown of 15 s: 30 s after the first failure, 60 s after the second, at most `BACKOFF_MOST_SECONDS`.
    """
    failures = _failures(context.snapshot.ended, transit.kind)
    if not failures:
        return None
    first = 2 * max(1.0, context.snapshot.spec.policy.cooldown.seconds)
    seconds = min(first * 2.0 ** min(len(failures) - 1, 16), tuning.BACKOFF_MOST_SECONDS)
    what = f"{len(failures)} transitions failed, the last one"
    return _not_before(context.snapshot.at, failures[0].at, seconds, reasons.BACKOFF, what)


def _failures(ended: tuple[Ended, ...], kind: TransitionKind) -> list[Ended]:
    """Failures of a kind since it last committed, newest first."""
    found: list[Ended] = []
    for each in sorted((each for each in ended if each.kind is kind), key=lambda each: -each.at):
        if not each.failed:
            break
        found.append(each)
    return found


def terminal_failure(context: Context, transit: Transit) -> Hold | None:
    """What has failed for good on a pod is not tried again on it; a pod that is made anew under its name is another."""
    pod = context.pods[transit.pod]
    for each in context.snapshot.ended:
        same = (each.pod, each.kind, each.to) == (pod.name, transit.kind, transit.to)
        if same and each.failed and not each.retryable and each.at > pod.created_at:
            return Hold(reasons.TERMINAL_FAILURE, f"{transit.kind} of {pod.name} to {transit.to} has failed for good")
    return None


def undoing(context: Context, transit: Transit) -> Hold | None:
    """No change undoes one of the last `tuning.REVERSAL_SECONDS` on evidence that is not all younger than that one.

    | evidence for the change | has lasted a window | veto |
    |---|---|---|
    | began before the move ended | any | yes |
    | began after it | no | yes |
    | began after it | yes | no |

    It may have been a move of another pod: the service is what would go back and forth.
    """
    pod = context.pods[transit.pod]
    move = _undone(context, transit, pod)
    if move is None:
        return None
    since = context.memory.evidence_since.get(_evidence(transit, pod), context.snapshot.at)
    if since >= move.at and context.snapshot.at - since >= context.snapshot.spec.policy.window.seconds:
        return None
    ago = number(max(0.0, context.snapshot.at - move.at))
    message = f"it would undo {move.pod}'s change from {move.from_} to {move.to}, {ago} s ago, without new evidence"
    return Hold(reasons.UNDOES, message)


def _undone(context: Context, transit: Transit, pod: PodView) -> Move | None:
    """The move that a change would undo. From Unified to either of the others undoes the way to Unified from either."""
    before = pod.layout.value if transit.kind is TransitionKind.LAYOUT else pod.role.value
    if Role.UNIFIED not in (transit.to, before):
        return context.latest.get((transit.kind, transit.to, before))
    found = [
        move
        for (_, from_, to), move in context.latest.items()
        if (to if before == Role.UNIFIED else from_) == Role.UNIFIED
    ]
    return max(found, key=lambda move: (move.at, move.pod), default=None)


def _evidence(transit: Transit, pod: PodView) -> str:
    if transit.kind is TransitionKind.LAYOUT:
        return layout.evidence_key(Layout(transit.to))
    return role.evidence_key(Role(transit.to), pod.role)


def hourly_limit(context: Context, _: Transit) -> Hold | None:
    """So many transitions an hour, failed ones included. After a restart those that status keeps are counted."""
    count = context.in_hour
    usual = max(tuning.TRANSITIONS_PER_HOUR, tuning.TRANSITIONS_PER_POD_AND_HOUR * len(context.fleet.live))
    most = context.snapshot.spec.policy.max_transitions_per_hour or usual
    if count < most:
        return None
    return Hold(reasons.HOURLY_LIMIT, f"{count} transitions within the hour, {most} are allowed")


def role_floor(context: Context, transit: Transit) -> Hold | None:
    """No role goes below its floor."""
    if transit.kind is not TransitionKind.ROLE:
        return None
    donor = context.pods[transit.pod].role
    spec = context.snapshot.spec.role(donor)
    floor, count = (spec.floor if spec else 0), context.fleet.roles.get(donor, 0)
    return Hold(reasons.ROLE_FLOOR, f"{donor} has {count} pods, its floor is {floor}") if count <= floor else None


def role_ceiling(context: Context, transit: Transit) -> Hold | None:
    """No role goes above its ceiling; one that the spec does not list has none to give."""
    if transit.kind is not TransitionKind.ROLE:
        return None
    role = Role(transit.to)
    spec = context.snapshot.spec.role(role)
    top, count = (ceiling(spec, len(context.fleet.live)) if spec else 0), context.fleet.roles.get(role, 0)
    return Hold(reasons.ROLE_CEILING, f"{role} has {count} pods, its ceiling is {top}") if count >= top else None


def capacity_kept(context: Context, transit: Transit) -> Hold | None:
    """A pod is not taken out while those that could stand in for it are down.

    | serving pods without this one | this pod | veto |
    |---|---|---|
    | one of its role, or a Unified one | any | no |
    | none of those | the only live one of its role | no: others serve whole requests, or the router queues |
    | none of those | one of several live ones | yes: the others are down, and this one carries the role |

    The queue of a router waits for its queue timeout; a drain that takes longer costs the requests behind it a 503.
    """
    pod = context.pods[transit.pod]
    remaining = dict(context.fleet.serving_roles)
    remaining[pod.role] = remaining.get(pod.role, 0) - pod.serving
    stands_in = remaining[pod.role] > 0 or remaining.get(Role.UNIFIED, 0) > 0
    if stands_in or context.fleet.roles.get(pod.role, 0) == 1:
        return None
    return Hold(reasons.CAPACITY_KEPT, f"{pod.name} is the only {pod.role} pod that serves now")


CHAINS: Mapping[Source, tuple[Guard, ...]] = {
    Source.POLICY: (
        human_hold, rollout_in_progress, transition_in_flight, restart_hold, dwell, transition_cost, cooldown, backoff,
        terminal_failure, undoing, hourly_limit, role_floor, role_ceiling, capacity_kept,
    ),
    Source.BRIDGE: (
        human_hold, rollout_in_progress, transition_in_flight, restart_hold, backoff, terminal_failure, hourly_limit,
        role_floor, role_ceiling, capacity_kept,
    ),
    Source.BOUNDS: (
        human_hold, rollout_in_progress, transition_in_flight, cooldown, backoff, terminal_failure, role_floor,
        role_ceiling, capacity_kept,
    ),
    Source.SPEC: (
        human_hold, rollout_in_progress, transition_in_flight, backoff, terminal_failure, capacity_kept,
    ),
    Source.OVERRIDE: (
        human_hold, rollout_in_progress, transition_in_flight, backoff, terminal_failure, role_floor, role_ceiling,
        capacity_kept,
    ),
}  # fmt: skip


def veto(context: Context, transit: Transit, source: Source) -> Hold | None:
    """First veto of the source's chain, or None."""
    for guard in CHAINS[source]:
        hold = guard(context, transit)
        if hold is not None:
            return hold
    return None


def _not_before(at: float, since: float, seconds: float, reason: str, what: str) -> Hold | None:
    passed = max(0.0, at - since)  # a pod's clock may be ahead
    return Hold(reason, f"{what} {number(passed)} s ago, {number(seconds)} s are due") if passed < seconds else None
