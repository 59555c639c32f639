# SPDX-License-Identifier: Apache-2.0
"""What was needed lately, and how many pods it keeps: the brakes of scale-down."""

import math

from gearshift.policy import tuning
from gearshift.policy.plan import Memory, Need, ScaleMemory


def lasting(needs: tuple[Need, ...], now: Need) -> tuple[Need, ...]:
    """The needs that count from now on, oldest first.

    | an earlier need | stays |
    |---|---|
    | older than the burst span | no |
    | no more than now, on each count | no: the present one outlasts it |
    | else | yes |
    """
    since = now.at - tuning.BURST_SECONDS
    return (*(need for need in needs if since < need.at < now.at and _outlasts(need, now)), now)


def _outlasts(need: Need, now: Need) -> bool:
    return need.down > now.down or need.carry > now.carry or need.load > now.load


def kept(scale: ScaleMemory, at: float, started_at: float) -> int:
    """Pods that what was needed lately keeps: the most of these.

    | what | of the last | counts |
    |---|---|---|
    | load with room for chance | stable span | always |
    | load, and on top of it the highest surge of the last hour | stable span | always |
    | what load and missed objectives asked for | burst span | always |
    | twice the load | burst span | until that has been watched: a higher burst may not have been seen yet |
    """
    stable = [need for need in scale.needs if at - need.at < tuning.STABLE_SECONDS]
    room = max((need.down for need in stable), default=0)
    surge = max((need.load for need in stable), default=0.0) + max((each.rise for each in scale.surges), default=0.0)
    carry = max((need.carry for need in scale.needs), default=0)
    load = math.ceil(max((need.load for need in scale.needs), default=0.0))
    return max(room, math.ceil(surge), carry, 2 * load if _new(at, started_at) else 0)


def _new(at: float, started_at: float) -> bool:
    """Whether a burst of the service may not have been seen yet."""
    return at - started_at < tuning.BURST_SECONDS


def rested(at: float, scale: ScaleMemory, memory: Memory) -> bool:
    """Whether a pod may go as far as the past says.

    | since | seconds |
    |---|---|
    | watching began | `tuning.WATCH_SECONDS` |
    | a pod was added | `tuning.REVERSAL_SECONDS` |
    | a pod went | `tuning.SHRINK_SECONDS`; `tuning.WATCH_SECONDS` until the burst span has been watched |
    | a pod that went was needed again | `rest_seconds` |
    """
    pace = tuning.WATCH_SECONDS if _new(at, memory.started_at) else tuning.SHRINK_SECONDS
    rests = (
        (memory.started_at, tuning.WATCH_SECONDS),
        (scale.grown_at, tuning.REVERSAL_SECONDS),
        (scale.shrunk_at, pace),
        (scale.regretted_at, rest_seconds(scale.regrets)),
    )
    return all(since is None or at - since >= seconds for since, seconds in rests)


def rest_seconds(regrets: int) -> float:
    """Time after a regret in which no pod goes, doubled by each one after the first."""
    doubled = min(max(regrets - 1, 0), 16)
    return min(tuning.REGRET_SECONDS * 2.0**doubled, tuning.LONGEST_REST_SECONDS)
