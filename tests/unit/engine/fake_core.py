# SPDX-License-Identifier: Apache-2.0
"""An EngineCore and its scheduler as far as the utilities look at them."""

from types import SimpleNamespace
from typing import Any


class FakeCore:
    """One EngineCore of ``ranks`` ranks with ``running`` requests."""

    def __init__(self, *, ranks: int = 2, running: int = 3, chunked: bool = True) -> None:
        self.vllm_config = SimpleNamespace(parallel_config=SimpleNamespace(world_size=ranks))
        self.answers: list[int] = list(range(ranks))
        self.thresholds: dict[int, int] = {}  # by rank, in a shift engine
        self.floor = 0
        self.asked = 0
        self.paused = False
        self.batch_queue: list[object] | None = None
        self.scheduler = SimpleNamespace(
            max_num_scheduled_tokens=512,
            max_num_running_reqs=16,
            max_num_active_reqs=16,
            scheduler_config=SimpleNamespace(long_prefill_token_threshold=0, enable_chunked_prefill=chunked),
            kv_cache_manager=SimpleNamespace(usage=0.25),
            running=[object()] * running,
            requests=dict.fromkeys(range(running + 1)),
            get_request_counts=lambda: (running, 1),
        )

    def pause_scheduler(self, mode: str, clear_cache: bool) -> object:
        assert (mode, clear_cache) == ("keep", False)
        self.paused = True
        return object()  # vLLM's future, which may take as long as it likes

    def resume_scheduler(self) -> None:
        self.paused = False

    def is_scheduler_paused(self) -> bool:
        return self.paused

    def shift(self, threshold: int, floor: int = 0) -> "FakeCore":
        """Make it a shift engine."""
        self.thresholds, self.floor = dict.fromkeys(self.answers, threshold), floor
        return self

    def collective_rpc(self, method: str, timeout: float, args: tuple[Any, ...] = ()) -> list[Any]:
        assert timeout > 0
        if method == "gearshift_shift_threshold":
            (tokens,) = args
            self.thresholds = dict.fromkeys(self.thresholds, tokens)
            return list(self.thresholds.values())
        assert method == "gearshift_report"
        self.asked += 1
        return [{"rank": rank, "shift": self._shift_state(rank)} for rank in self.answers]

    def _shift_state(self, rank: int) -> dict[str, Any] | None:
        if not self.thresholds:
            return None
        return {
            "thresholdTokens": self.thresholds[rank],
            "floorTokens": self.floor,
            "sequenceParallelSize": 2,
            "steps": {"TP": 5, "SP": 2},
            "tokens": {"TP": 50, "SP": 700},
            "stepSeconds": {"TP": 0.5, "SP": 0.25},
            "exchangedBytes": 1000,
            "weightsBytes": {"TP": 10, "SP": 20},
            "phases": {"load": 1.5},
            "curve": [],
        }
