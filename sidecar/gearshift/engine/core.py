# SPDX-License-Identifier: Apache-2.0
"""What runs inside each EngineCore process: the utilities that the API server's routes call.

They are new methods of EngineCore (names beginning with ``gearshift_``), run between two steps of the engine's loop in
its own thread, and change nothing of what vLLM does by itself. Arguments and answers are plain JSON values.
"""

import time
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from gearshift.api.engine import RoleKnobs
from gearshift.api.vocabulary import Layout, Role
from gearshift.engine import shiftview
from gearshift.engine.compat.base import Compat
from gearshift.engine.knobs import KnobRefusedError, Knobs, settle

RANKS_FRESH_SECONDS: Final = 1.0
"""A polled state may repeat an answer of the ranks this old: asking them holds up the next step."""
RANKS_TIMEOUT_SECONDS: Final = 5.0

_CLEAR_CACHE: Final = False

Report = dict[str, Any]


@dataclass
class Memory:
    """What one EngineCore knows beside what vLLM keeps."""

    start: Knobs
    role: Role = Role.UNIFIED
    epoch: int = 0
    ranks: int = 0
    ranks_asked_at: float = float("-inf")
    shift: Report | None = None  # what the ranks of a shift engine said last
    start_threshold: int = 0  # of a shift engine, when it was first asked
    layout: Layout | None = None  # of a shift engine


class CoreUtilities:
    """The utilities, for one version of vLLM."""

    def __init__(self, compat: Compat) -> None:
        self._compat = compat
        self._memories: WeakKeyDictionary[Any, Memory] = WeakKeyDictionary()

    def state(self, core: Any, *, fresh: bool) -> Report:
        """State of this core; ``fresh`` asks the ranks even when they have just answered."""
        memory = self._memory(core)
        if fresh or time.monotonic() - memory.ranks_asked_at > RANKS_FRESH_SECONDS:
            self._ask_ranks(core, memory)
        running, waiting = self._compat.counts(core.scheduler)
        return {
            "role": memory.role.value,
            "epoch": memory.epoch,
            "paused": bool(core.is_scheduler_paused()) and self._compat.steps_in_flight(core) == 0,
            "ranks": memory.ranks,
            "world_size": int(core.vllm_config.parallel_config.world_size),
            "knobs": self._compat.read_knobs(core.scheduler).wire().dump(),
            "running": running,
            "waiting": waiting,
            "kv_usage": self._compat.kv_usage(core.scheduler),
            "kv_held": self._compat.kv_held(core.scheduler),
            "layout": memory.layout,
            "shift": memory.shift,
        }

    def pause(self, core: Any) -> Report:
        """Schedule nothing from now on; paused is true once no step is in flight any more.

        vLLM's own answer is not waited for: it would come only when all KV that others have yet to pull is gone, but a
        paused core goes on giving that away.
        """
        core.pause_scheduler("keep", _CLEAR_CACHE)
        return self.state(core, fresh=False)

    def set_role(self, core: Any, role: str, epoch: int, knobs: Report) -> Report:
        """Take a role: settings left open fall back to those of the start. Refused as a whole or done as a whole."""
        memory = self._memory(core)
        try:
            self._compat.write_knobs(core.scheduler, settle(RoleKnobs.model_validate(knobs), memory.start))
        except KnobRefusedError as error:
            return {"refused": str(error)}
        memory.role = Role(role)
        memory.epoch = epoch
        return self.state(core, fresh=True)

    def set_epoch(self, core: Any, epoch: int) -> Report:
        """Take an epoch without any other change."""
        self._memory(core).epoch = epoch
        return self.state(core, fresh=True)

    def set_layout(self, core: Any, layout: str, epoch: int, threshold: int | None) -> Report:
        """Take a layout of the shift engine by its threshold, on all ranks before the next step; refused or done."""
        memory, wanted = self._memory(core), Layout(layout)
        self._ask_ranks(core, memory)
        if memory.shift is None:
            return {"refused": f"layout: this engine has no sequence-parallel tree for {layout}"}
        refused = shiftview.refusal(memory.shift, wanted, threshold, memory.start_threshold)
        if refused is not None:
            return {"refused": refused}
        tokens = shiftview.threshold_for(wanted, threshold, memory.start_threshold)
        core.collective_rpc("gearshift_shift_threshold", RANKS_TIMEOUT_SECONDS, (tokens,))
        memory.layout, memory.epoch = wanted, epoch
        return self.state(core, fresh=True)

    def _ask_ranks(self, core: Any, memory: Memory) -> None:
        answers = core.collective_rpc("gearshift_report", RANKS_TIMEOUT_SECONDS)
        memory.ranks, memory.shift = shiftview.agreeing(answers), shiftview.summary(answers)
        memory.ranks_asked_at = time.monotonic()
        if memory.shift is not None and memory.layout is None:
            memory.start_threshold = memory.shift["thresholdTokens"]
            memory.layout = shiftview.first_layout(memory.shift)

    def _memory(self, core: Any) -> Memory:
        memory = self._memories.get(core)
        if memory is None:
            memory = self._memories[core] = Memory(start=self._compat.read_knobs(core.scheduler))
        return memory
