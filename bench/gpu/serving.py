# SPDX-License-Identifier: Apache-2.0
"""vLLM of one layout in this process, as its API server runs it, with dummy weights.

`AsyncLLM` is what the API server drives, so DP is vLLM's own data parallelism with its own load balancing, exactly what
a pod of layout DP runs; the offline `LLM` class refuses data parallelism in one process.
"""

import itertools
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from bench.gpu import devices, shapes
from bench.gpu.job import Job


def arguments(job: Job) -> dict[str, Any]:
    """Engine arguments of a job; what the job says itself wins."""
    ranks = {"data_parallel_size" if job.layout == "DP" else "tensor_parallel_size": job.ranks}
    found: dict[str, Any] = {
        "model": str(shapes.write(job.shape, Path(job.models))),
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "max_model_len": job.context_tokens,
        "enable_prefix_caching": False,
        "disable_log_stats": True,
        "worker_extension_cls": "bench.gpu.probe.Probe",
        **ranks,
        **devices.engine_arguments(job.device),
    }
    if job.layout == "Shift":
        found["worker_cls"] = devices.shift_worker(job.device)
        found["additional_config"] = {"gearshift": job.shift}
    if job.profile:
        from vllm.config import ProfilerConfig  # noqa: PLC0415 - only this child has vLLM

        found["profiler_config"] = ProfilerConfig(profiler="torch", torch_profiler_dir=job.profile)
    return found | job.engine


class Engine:
    """A running engine; made within an event loop."""

    def __init__(self, job: Job) -> None:
        from vllm import AsyncEngineArgs  # noqa: PLC0415
        from vllm.usage.usage_lib import UsageContext  # noqa: PLC0415
        from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415

        begin = time.monotonic()
        as_served = UsageContext.OPENAI_API_SERVER
        self._llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments(job)), usage_context=as_served)
        self.start_seconds = time.monotonic() - begin
        self._layout = job.layout
        self._numbers = itertools.count()

    async def stream(self, prompt: list[int], output_tokens: int) -> AsyncIterator[int]:
        """Serve one request; yields how many tokens have come, as they come."""
        from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415

        async for output in self._outputs(prompt, output_tokens, RequestOutputKind.DELTA):
            yield len(output.outputs[0].token_ids)

    async def answer(self, prompt: list[int], output_tokens: int) -> None:
        """Serve one request to its end; cheaper for this process than a stream.

        Raises:
            RuntimeError: it ended with another number of tokens.
        """
        from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415

        got = 0
        async for output in self._outputs(prompt, output_tokens, RequestOutputKind.FINAL_ONLY):
            got = len(output.outputs[0].token_ids)
        if got != output_tokens:
            raise RuntimeError(f"a request of {output_tokens} tokens ended with {got}")

    def _outputs(self, prompt: list[int], output_tokens: int, kind: Any) -> AsyncIterator[Any]:
        from vllm import SamplingParams  # noqa: PLC0415

        sampling = SamplingParams(
            max_tokens=output_tokens, ignore_eos=True, detokenize=False, temperature=0, output_kind=kind
        )
        outputs: AsyncIterator[Any] = self._llm.generate(
            {"prompt_token_ids": prompt}, sampling, request_id=f"bench-{next(self._numbers)}"
        )
        return outputs

    async def facts(self) -> dict[str, Any]:
        """Weights of a rank by tree, KV cache of the whole engine, and the start's phases."""
        config = self._llm.vllm_config.cache_config
        state = await self.shift_state()
        plain = {"TP": (await self._llm.collective_rpc("bench_weights_bytes"))[0]}
        return {
            "seconds": round(self.start_seconds, 2),
            "phases": state.get("phases", {}),
            "weightsBytes": state.get("weightsBytes", plain),
            "kvTokens": int((config.num_gpu_blocks or 0) * config.block_size),
            **{name: state[name] for name in ("thresholdTokens", "floorTokens", "curve") if name in state},
        }

    async def shift_state(self) -> dict[str, Any]:
        """What rank 0 of the shift engine says of itself; empty for other layouts."""
        if self._layout != "Shift":
            return {}
        found: dict[str, Any] = (await self._llm.collective_rpc("gearshift_shift_state"))[0]
        return found

    async def profile(self, prompt: list[int]) -> None:
        """Write a trace of the kernels of one prefill to the folder of the job."""
        await self._llm.start_profile()
        await self.answer(prompt, 1)
        await self._llm.stop_profile()

    def stop(self) -> None:
        """End the engine's processes."""
        self._llm.shutdown()
