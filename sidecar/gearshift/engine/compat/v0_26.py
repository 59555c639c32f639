# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.26: one attribute both admits requests and bounds the batch in an assertion of every step."""

from typing import Any, ClassVar, Final

from gearshift.engine.compat.base import CLIENT, COMMON, Compat
from gearshift.engine.compat.symbols import Function, Symbol
from gearshift.engine.knobs import KnobRefusedError


class Compat026(Compat):
    """``max_num_running_reqs`` must never be below the number of running requests."""

    minor: ClassVar[str] = "0.26"
    symbols: ClassVar[tuple[Symbol | Function, ...]] = (
        *COMMON,
        Symbol(CLIENT, "AsyncMPClient", methods=(("_call_utility_async", ("method", "engine")),)),
        Symbol(CLIENT, "MPClient", assigned=("core_engines",)),
    )

    def _admission(self, scheduler: Any) -> int:
        return int(scheduler.max_num_running_reqs)

    def _set_admission(self, scheduler: Any, sequences: int) -> None:
        running = len(scheduler.running)
        if sequences < running:
            raise KnobRefusedError("maxNumSeqs", f"{sequences} is below the {running} requests that run: drain first")
        scheduler.max_num_running_reqs = sequences


COMPAT: Final = Compat026()
