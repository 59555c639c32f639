# SPDX-License-Identifier: Apache-2.0
"""An EngineCore and its scheduler as far as the utilities look at them."""

from types import SimpleNamespace
from typing import Any


class FakeCore:
    """One EngineCore of ``ranks`` ranks with ``running`` requests."""

    def __init__(self, *, ranks: int = 2, running: int = 3, chunked: bool = True) -> None:
        self.vllm_config = SimpleNamespace(parallel_config=SimpleNamespace(world_size=ranks))
        self.answers: list[int] = list(range(ranks))
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

    def collective_rpc(self, method: str, timeout: float) -> list[Any]:
        assert (method, timeout > 0) == ("gearshift_rank", True)
        self.asked += 1
        return self.answers
