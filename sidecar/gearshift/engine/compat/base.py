# SPDX-License-Identifier: Apache-2.0
"""What the supported versions of vLLM have in common; a version's module overrides what differs."""

import asyncio
from typing import Any, ClassVar

from gearshift.engine.compat.shift import SHIFT
from gearshift.engine.compat.symbols import Function, Symbol
from gearshift.engine.knobs import KnobRefusedError, Knobs

SCHEDULER = "v1.core.sched.scheduler"
CORE = "v1.engine.core"
CLIENT = "v1.engine.core_client"

COMMON: tuple[Symbol | Function, ...] = (
    *SHIFT,
    Symbol(
        CORE,
        "EngineCore",
        methods=(
            ("pause_scheduler", ("mode", "clear_cache")),
            ("resume_scheduler", ()),
            ("is_scheduler_paused", ()),
            ("collective_rpc", ("method", "timeout")),
        ),
        assigned=("scheduler", "vllm_config", "batch_queue"),
    ),
    Symbol(
        CORE, "EngineCoreProc", methods=(("pause_scheduler", ("mode", "clear_cache")), ("_invoke_utility_method", ()))
    ),
    Symbol(
        SCHEDULER,
        "Scheduler",
        methods=(("get_request_counts", ()), ("set_pause_state", ("pause_state",))),
        assigned=(
            "max_num_running_reqs",
            "max_num_scheduled_tokens",
            "scheduler_config",
            "kv_cache_manager",
            "running",
            "requests",
        ),
    ),
    Symbol(
        "config.scheduler",
        "SchedulerConfig",
        assigned=("long_prefill_token_threshold", "enable_chunked_prefill", "max_num_batched_tokens", "max_num_seqs"),
    ),
    Symbol("v1.core.kv_cache_manager", "KVCacheManager", methods=(("usage", ()),)),
    Symbol("v1.worker.worker_base", "WorkerBase", assigned=("rank",)),
    Symbol("config.parallel", "ParallelConfig", assigned=("data_parallel_size", "world_size")),
    Symbol("v1.engine.async_llm", "AsyncLLM", assigned=("engine_core", "vllm_config")),
)


class Compat:
    """Access to vLLM's scheduler (inside an EngineCore) and to its cores (from the API server)."""

    minor: ClassVar[str]
    symbols: ClassVar[tuple[Symbol | Function, ...]]

    def read_knobs(self, scheduler: Any) -> Knobs:
        """The scheduler's settings as they are now."""
        return Knobs(
            max_num_batched_tokens=int(scheduler.max_num_scheduled_tokens),
            max_num_seqs=self._admission(scheduler),
            long_prefill_token_threshold=int(scheduler.scheduler_config.long_prefill_token_threshold),
        )

    def write_knobs(self, scheduler: Any, knobs: Knobs) -> None:
        """Set all of them; they hold from the next step on.

        Raises:
            KnobRefusedError: one of them can't be set now; then none was.
        """
        chunked = bool(scheduler.scheduler_config.enable_chunked_prefill)
        if not chunked and knobs.max_num_batched_tokens != scheduler.max_num_scheduled_tokens:
            raise KnobRefusedError("maxNumBatchedTokens", "without chunked prefill a step must hold a whole prompt")
        self._set_admission(scheduler, knobs.max_num_seqs)
        scheduler.max_num_scheduled_tokens = knobs.max_num_batched_tokens
        scheduler.scheduler_config.long_prefill_token_threshold = knobs.long_prefill_token_threshold

    def counts(self, scheduler: Any) -> tuple[int, int]:
        """Requests in the batch and requests that wait."""
        running, waiting = scheduler.get_request_counts()
        return int(running), int(waiting)

    def kv_usage(self, scheduler: Any) -> float:
        """Used share of the KV cache, 0..1."""
        return float(scheduler.kv_cache_manager.usage)

    def kv_held(self, scheduler: Any) -> int:
        """Requests that have ended here while another engine still has to pull their KV."""
        return len(scheduler.requests) - sum(self.counts(scheduler))

    def steps_in_flight(self, core: Any) -> int:
        """Steps that were handed to the ranks and whose results are not in; never any without a batch queue."""
        return len(core.batch_queue or ())

    async def call_all(self, client: Any, method: str, *args: object) -> list[Any]:
        """Call a utility on every EngineCore of an API server's client; one answer for each, in their order."""
        engines = client.core_engines
        ask = client._call_utility_async  # noqa: SLF001 - this version has no public way to ask all of them
        return await asyncio.gather(*(ask(method, *args, engine=engine) for engine in engines))

    def _admission(self, scheduler: Any) -> int:
        raise NotImplementedError

    def _set_admission(self, scheduler: Any, sequences: int) -> None:
        raise NotImplementedError
