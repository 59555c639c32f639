# SPDX-License-Identifier: Apache-2.0
"""Pods that die at random moments, and how long it takes until the status of their service tells."""

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any, Final

from bench.scale.api import Api
from bench.scale.sidecars import ENGINES
from bench.scale.witness import Key, Witness
from gearshift.api import names
from gearshift.operator.resources import PODS

Json = dict[str, Any]
_SEED: Final = 7
_GIVE_UP_SECONDS: Final = 60.0


async def kill(api: Api, witness: Witness, deaths: int, each_second: float) -> list[float]:
    """Seconds from before the API server is told of a death until the service's status tells; one a death.

    Half of the pods are deleted without grace, as when their node is taken away; half fail, as when they are evicted.
    A death that is never told counts as the longest wait.
    """
    chance = random.Random(_SEED)
    pods, _ = await api.list_all(PODS, ENGINES)
    died: dict[str, float] = {}
    for number, pod in enumerate(_one_a_service(pods, deaths, chance)):
        meta = pod["metadata"]
        witness.expect(_service(pod), meta["name"], meta["uid"])
        died[meta["uid"]] = time.monotonic()
        if number % 2:
            await api.kill_pod(PODS, meta["namespace"], meta["name"])
        else:
            await api.patch_status(PODS, meta["namespace"], meta["name"], _failed())
        await asyncio.sleep(chance.expovariate(each_second))
    await witness.until(lambda: died.keys() <= witness.reported_at.keys(), _GIVE_UP_SECONDS)
    never = time.monotonic()
    return sorted(witness.reported_at.get(uid, never) - at for uid, at in died.items())


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value that ``share`` of the values do not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _one_a_service(pods: list[Json], count: int, chance: random.Random) -> list[Json]:
    """Pods of different services, as long as there are services enough; then a second one of each, and so on."""
    by_service: dict[Key, list[Json]] = {}
    for pod in chance.sample(pods, len(pods)):
        by_service.setdefault(_service(pod), []).append(pod)
    rounds = max(len(group) for group in by_service.values())
    ordered = [group[turn] for turn in range(rounds) for group in by_service.values() if turn < len(group)]
    return ordered[:count]


def _service(pod: Json) -> Key:
    return pod["metadata"]["namespace"], pod["metadata"]["labels"][names.LABEL_SERVICE]


def _failed() -> Json:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    condition = {"type": "Ready", "status": "False", "reason": "PodFailed", "lastTransitionTime": now}
    return {"phase": "Failed", "reason": "Evicted", "conditions": [condition]}
