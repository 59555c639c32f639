# SPDX-License-Identifier: Apache-2.0
"""One vLLM engine of one layout: start it, measure it, print one JSON object. A child process of `shift`.

python -m bench.gpu.engine --shape llama-70b-fp8 --layout Shift --ranks 4 --inputs 4096 --peak 192
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.gpu import shapes

WORKER = "gearshift.engine.shift.cuda.ShiftWorker"
OUTPUT_TOKENS = 250


def prompt(seed: int, tokens: int) -> dict[str, list[int]]:
    """Token ids without shared prefixes."""
    return {"prompt_token_ids": [(7919 * seed + 13 * j + j * j) % 100_000 % 1000 + 5 for j in range(tokens)]}


class Engine:
    """vLLM in this process with dummy weights."""

    def __init__(self, options: argparse.Namespace) -> None:
        from vllm import LLM  # noqa: PLC0415 - only this child has vLLM

        more: dict[str, Any] = json.loads(options.engine)
        if options.profile:
            more["profiler_config"] = {"profiler": "torch", "torch_profiler_dir": options.profile}
        if options.layout == "Shift":
            more["worker_cls"] = WORKER
            more["additional_config"] = {"gearshift": json.loads(options.shift)}
        folder = Path(options.models or tempfile.mkdtemp())
        begin = time.monotonic()
        self._llm = LLM(
            model=str(shapes.write(options.shape, folder)),
            load_format="dummy",
            skip_tokenizer_init=True,
            tensor_parallel_size=options.ranks,
            max_model_len=options.max_model_len,
            gpu_memory_utilization=0.9,
            max_num_seqs=256,
            enable_prefix_caching=False,
            disable_log_stats=True,
            **more,
        )
        self.start_seconds = time.monotonic() - begin
        self.layout = options.layout

    def generate(self, prompts: list[dict[str, list[int]]], tokens: int) -> float:
        """Serve prompts at once; returns seconds."""
        from vllm import SamplingParams  # noqa: PLC0415

        sampling = SamplingParams(max_tokens=tokens, ignore_eos=True, detokenize=False, temperature=0)
        begin = time.monotonic()
        self._llm.generate(prompts, sampling, use_tqdm=False)
        return time.monotonic() - begin

    def trace(self, prompts: list[dict[str, list[int]]]) -> None:
        """Write a trace of the kernels of one prefill to the folder of ``--profile``."""
        self._llm.start_profile()
        self.generate(prompts, 1)
        self._llm.stop_profile()

    def state(self) -> dict[str, Any]:
        """What the shift engine says of itself."""
        if self.layout != "Shift":
            return {}
        found: dict[str, Any] = self._llm.collective_rpc("gearshift_shift_state")[0]
        return found

    def kv_tokens(self) -> int:
        """Tokens that fit the KV cache."""
        config = self._llm.llm_engine.vllm_config.cache_config
        return int((config.num_gpu_blocks or 0) * config.block_size)


def latency(engine: Engine, length: int) -> dict[str, float]:
    """Median TTFT and TPOT in milliseconds of one request at a time."""
    first = [engine.generate([prompt(10 + i, length)], 1) for i in range(7)]
    ttft = statistics.median(first[2:])
    whole = statistics.median(engine.generate([prompt(50 + i, length)], OUTPUT_TOKENS + 1) for i in range(3))
    return {"ttft_ms": round(1e3 * ttft, 2), "tpot_ms": round(1e3 * (whole - ttft) / OUTPUT_TOKENS, 3)}


def peak(engine: Engine, requests: int, length: int) -> float:
    """Tokens per second, in and out, of so many requests at once."""
    seconds = engine.generate([prompt(1000 + i, length) for i in range(requests)], OUTPUT_TOKENS)
    return round(requests * (length + OUTPUT_TOKENS) / seconds, 1)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Everything that was asked for, as one JSON object."""
    engine = Engine(options)
    engine.generate([prompt(1, 4096)], 8)
    engine.generate([prompt(2, 8192), prompt(3, 600)], 4)
    result: dict[str, Any] = {
        "layout": options.layout,
        "ranks": options.ranks,
        "start_seconds": round(engine.start_seconds, 1),
        "kv_tokens": engine.kv_tokens(),
        "latency": {str(length): latency(engine, length) for length in options.inputs},
    }
    print("PART", json.dumps(result), flush=True)
    if options.profile:
        engine.trace([prompt(99, options.inputs[0])])
    if options.peak:
        result["tokens_per_second"] = peak(engine, options.peak, options.peak_input)
    return result | {"shift": engine.state()}


def parse() -> argparse.Namespace:
    """Command line of one engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="llama-70b-fp8", choices=shapes.SHAPES)
    parser.add_argument("--layout", default="TP", choices=["TP", "Shift"])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--inputs", type=int, nargs="*", default=[4096])
    parser.add_argument("--peak", type=int, default=0, help="requests at once")
    parser.add_argument("--peak-input", type=int, default=4096)
    parser.add_argument("--max-model-len", type=int, default=16384)
    parser.add_argument("--profile", help="folder for a kernel trace of one prefill")
    parser.add_argument("--models", help="folder for the configurations")
    parser.add_argument("--shift", default="{}", help="JSON of the shift settings")
    parser.add_argument("--engine", default="{}", help="JSON of more engine arguments")
    return parser.parse_args()


if __name__ == "__main__":
    print("RESULT", json.dumps(measure(parse())), flush=True)
