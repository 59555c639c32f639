# SPDX-License-Identifier: Apache-2.0
"""One engine of one layout: start it, measure its parts, append one JSON record a part. A child process of `shift`.

    python -m bench.gpu.engine JOB RECORDS

JOB is the JSON of a `bench.gpu.job.Job`. A record is written as soon as its part is done, so a child that is ended
early leaves what it has.
"""

import time

_BEGIN = time.monotonic()  # before anything heavy is imported: what a start costs includes the imports

import asyncio  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from bench.gpu import parts  # noqa: E402
from bench.gpu.job import Job  # noqa: E402
from bench.gpu.serving import Engine  # noqa: E402

WARM_UP = ((4096, 8), (8192, 4), (600, 4))  # tokens in and out


class Records:
    """The file that the results go to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, part: str, settings: dict[str, Any], values: dict[str, Any]) -> None:
        """Append the record of a part."""
        with self._path.open("a") as file:
            file.write(json.dumps({"part": part, "settings": settings, **values}) + "\n")


async def measure(job: Job, records: Records) -> None:
    """Start the engine, run the parts of the job."""
    engine = Engine(job)
    try:
        await engine.answer(parts.prompt(16), 1)
        ready = {"readySeconds": round(time.monotonic() - _BEGIN, 2)}
        records.add("start", {"ranks": job.ranks, "engine": job.engine}, ready | await engine.facts())
        await _run(engine, job, records)
        records.add("state", {}, await engine.shift_state())
    finally:
        engine.stop()


async def _warm_up(engine: Engine, job: Job) -> None:
    """As many requests of each length as there are ranks: every replica of DP gets one."""
    for length, output in WARM_UP:
        prompts = [parts.prompt(min(length, job.context_tokens - output)) for _ in range(job.ranks)]
        await asyncio.gather(*(engine.answer(each, output) for each in prompts))


async def _run(engine: Engine, job: Job, records: Records) -> None:
    reached = None
    if job.latency or job.peak or job.burst or job.profile:
        await _warm_up(engine, job)
    if job.latency:
        records.add("latency", job.latency.model_dump(mode="json"), await parts.latency(engine, job.latency))
    if job.profile:
        await engine.profile(parts.prompt(min(4096, job.context_tokens - 1)))
    if job.peak:
        found = await parts.peak(engine, job.peak)
        reached = max(rate for _, rate in found["rounds"])
        records.add("peak", job.peak.model_dump(mode="json"), found)
    if job.burst:
        ask = job.burst.resolved(reached)
        records.add("burst", ask.model_dump(mode="json"), await parts.burst(engine, ask))


def main() -> None:
    """Entry point."""
    _, job, path = sys.argv
    asyncio.run(measure(Job.model_validate_json(job), Records(Path(path))))


if __name__ == "__main__":
    main()
