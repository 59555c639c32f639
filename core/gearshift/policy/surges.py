# SPDX-License-Identifier: Apache-2.0
"""How far load has risen before a new pod could serve: what came once comes again, and pods would come too late."""

from collections.abc import Sequence
from dataclasses import dataclass

from gearshift.policy import tuning
from gearshift.policy.samples import Sample


@dataclass(frozen=True, slots=True)
class Surge:
    """A rise of the load, in pods that it keeps busy more than before."""

    at: float
    rise: float


def rise(level: float, samples: Sequence[Sample], since: float) -> float:
    """Work by which the level exceeds the least of the samples from ``since`` on; at least 0."""
    return max(0.0, level - min((each.work for each in samples if each.at >= since), default=level))


def surged(surges: tuple[Surge, ...], now: Surge) -> tuple[Surge, ...]:
    """The surges that count from now on, oldest first, each higher than those after it.

    | an earlier surge | stays | the present one |
    |---|---|---|
    | older than `tuning.SURGE_SECONDS` | no | is remembered |
    | not higher than now | no: the present one outlasts it | is remembered |
    | higher, of the last `tuning.STABLE_SECONDS` | yes | is not: it would not last much longer |
    | higher, before that | yes | is remembered |
    """
    since = now.at - tuning.SURGE_SECONDS
    higher = tuple(each for each in surges if since < each.at < now.at and each.rise > now.rise)
    if higher and now.at - higher[-1].at < tuning.STABLE_SECONDS:
        return higher
    return (*higher, now)
