# SPDX-License-Identifier: Apache-2.0
"""A steady load beside a test: streamed completions at a rate until the test says stop, and what became of each."""

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from gearshift.sim.load import Arrival, Outcome, Target, run_load
from gscluster.waiting import wait_for

PROMPTS = 8  # different ones, in turn: equal prompts must give equal texts


class Load:
    """Requests of one size at a steady rate, while the ``with`` block runs; its end waits for the last answer."""

    def __init__(
        self,
        url: str,
        model: str = "simulated",
        *,
        requests_per_second: float = 5,
        prompt_tokens: int = 64,
        output_tokens: int = 16,
    ) -> None:
        self.outcomes: list[Outcome] = []
        self._target = Target(url=url, model=model, timeout_seconds=120)
        self._rate = requests_per_second
        self._sizes = (prompt_tokens, output_tokens)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None
        self._begin = 0.0

    def __enter__(self) -> Self:
        self._begin = time.monotonic()
        self._thread.start()
        self.wait_for_answers(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def now(self) -> float:
        """Seconds since the load began, the clock of ``Outcome.sent_at``."""
        return time.monotonic() - self._begin

    def wait_for_answers(self, count: int, timeout_seconds: float = 180) -> None:
        """Return when ``count`` more requests have ended."""
        wanted = len(self.outcomes) + count
        wait_for(lambda: len(self.outcomes) >= wanted, f"{count} more answers", timeout_seconds=timeout_seconds)

    def failures(self) -> list[str]:
        """Each failed request in words."""
        return [words(outcome) for outcome in self.outcomes if outcome.failure]

    def digests(self) -> dict[int, set[str]]:
        """Texts of each prompt that was answered, as digests."""
        found: dict[int, set[str]] = {}
        for outcome in self.outcomes:
            if not outcome.failure:
                found.setdefault(outcome.arrival.prompt_seed, set()).add(outcome.text_digest)
        return found

    def _run(self) -> None:
        try:
            asyncio.run(self._send())
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread by __exit__
            self._error = error

    async def _send(self) -> None:
        await run_load(self._target, self._arrivals(), self.outcomes.append)

    def _arrivals(self) -> Iterator[Arrival]:
        for number in itertools.count():
            if self._ended.is_set():
                return
            yield Arrival(number / self._rate, *self._sizes, prompt_seed=number % PROMPTS)


def words(outcome: Outcome) -> str:
    """A failed request for a message."""
    first = "no token" if outcome.ttft_seconds is None else f"first token after {outcome.ttft_seconds:.2f} s"
    took = f"sent at {outcome.sent_at:.1f} s, {first}, ended after {outcome.e2e_seconds:.1f} s"
    return f"{outcome.failure} ({took}): {outcome.message}"
