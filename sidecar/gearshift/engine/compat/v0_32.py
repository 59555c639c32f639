# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.32: admission has an attribute of its own, and the client knows how to ask all cores."""

from typing import Any, ClassVar, Final

from gearshift.engine.compat.base import CLIENT, COMMON, SCHEDULER, Compat
from gearshift.engine.compat.symbols import Function, Symbol


class Compat032(Compat):
    """``max_num_active_reqs`` may fall below what runs: no more are admitted until enough have ended."""

    minor: ClassVar[str] = "0.32"
    symbols: ClassVar[tuple[Symbol | Function, ...]] = (
        *COMMON,
        Symbol(SCHEDULER, "Scheduler", assigned=("max_num_active_reqs",)),
        Symbol(CLIENT, "AsyncMPClient", methods=(("call_utility_all_async", ("method",)),)),
    )

    async def call_all(self, client: Any, method: str, *args: object) -> list[Any]:
        """As the base says."""
        answers: list[Any] = await client.call_utility_all_async(method, *args)
        return answers

    def _admission(self, scheduler: Any) -> int:
        return int(scheduler.max_num_active_reqs)

    def _set_admission(self, scheduler: Any, sequences: int) -> None:
        scheduler.max_num_active_reqs = sequences


COMPAT: Final = Compat032()
