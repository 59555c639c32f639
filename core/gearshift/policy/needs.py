# SPDX-License-Identifier: Apache-2.0
"""What was needed lately, and how many pods it keeps: the brakes of scale-down."""

from gearshift.policy import tuning
from gearshift.policy.plan import Memory, Need, ScaleMemory


def lasting(needs: tuple[Need, ...], now: Need) -> tuple[Need, ...]:
    """The needs that count from now on, oldest first.

    | an earlier need | stays |
    |---|---|
    | older than the burst span | no |
    | no more than now, on both counts | no: the present one outlasts it |
    | else | yes |
    """
    since = now.at - tuning.BURST_SECONDS
    earlier = (need for need in needs if since < need.at < now.at)
    return (*(need for need in earlier if need.down > now.down or need.carry > now.carry), now)


def kept(needs: tuple[Need, ...], at: float, started_at: float) -> int:
    """Pods that what was needed lately keeps.

    With the most that the load kept busy in the burst span, and the most with room for chance in the stable span:

    | watched for | kept, the more of |
    |---|---|
    | the burst span | both |
    | less | twice the first, and the second: a higher burst may not have been seen yet |
    """
    room = max((need.down for need in needs if at - need.at < tuning.STABLE_SECONDS), default=0)
    load = max((need.carry for need in needs), default=0)
    return max(room, load if at - started_at >= tuning.BURST_SECONDS else 2 * load)


def rested(at: float, scale: ScaleMemory, memory: Memory) -> bool:
    """Whether a pod may go as far as the past says."""
    rests = (
        (memory.started_at, tuning.WATCH_SECONDS),
        (scale.grown_at, tuning.REVERSAL_SECONDS),
        (scale.shrunk_at, tuning.SHRINK_SECONDS),
        (scale.regretted_at, rest_seconds(scale.regrets)),
    )
    return all(since is None or at - since >= seconds for since, seconds in rests)


def rest_seconds(regrets: int) -> float:
    """Time after a regret in which no pod goes, doubled by each one after the first."""
    doubled = min(max(regrets - 1, 0), 16)
    return min(tuning.REGRET_SECONDS * 2.0**doubled, tuning.LONGEST_REST_SECONDS)
