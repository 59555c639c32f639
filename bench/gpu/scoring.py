# SPDX-License-Identifier: Apache-2.0
"""Score a text with a checkpoint, once with each tree of one shift engine. A child process of `likelihood`.

    python -m bench.gpu.scoring OPTIONS RESULT

OPTIONS is the JSON of `Scoring`; RESULT gets a JSON object: for each tree the log-likelihoods of the text's tokens, and
what the engine counted meanwhile.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from bench.gpu import devices
from bench.gpu.devices import Device
from gearshift.engine.shiftview import NEVER_TOKENS

TREES = {"TP": NEVER_TOKENS, "SP": 0}
"""Threshold by tree: no step is above the first, every step above the second."""


class Scoring(BaseModel):
    """What to score, with what."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    text: str
    ranks: int
    window_tokens: int  # of one prompt
    windows: int  # at most
    device: Device = "cuda"
    shift: dict[str, Any] = {}
    engine: dict[str, Any] = {}


def engine_arguments(scoring: Scoring) -> dict[str, Any]:
    """Nothing is kept between the trees (no prefix cache), and no captured graph keeps a step from the choice."""
    return {
        "model": scoring.model,
        "tensor_parallel_size": scoring.ranks,
        "max_model_len": scoring.window_tokens + 1,
        "enable_prefix_caching": False,
        "compilation_config": {"cudagraph_mode": "NONE"},
        "worker_cls": devices.shift_worker(scoring.device),
        "additional_config": {"gearshift": {"thresholdTokens": 0, **scoring.shift}},
        **devices.engine_arguments(scoring.device),
        **scoring.engine,
    }


def windows(ids: list[int], window_tokens: int, most: int) -> list[list[int]]:
    """The text in prompts of equal length; what is left at the end is dropped, unless it is all there is."""
    whole = [ids[at : at + window_tokens] for at in range(0, len(ids) - window_tokens + 1, window_tokens)]
    return (whole or [ids])[:most]


def score(llm: Any, prompts: list[list[int]], tree: str) -> dict[str, Any]:
    """Log-likelihood of each token but the first of each prompt, with the steps by tree that it took."""
    from vllm import SamplingParams  # noqa: PLC0415 - only this child has vLLM

    llm.collective_rpc("gearshift_shift_threshold", args=(TREES[tree],))
    before = _steps(llm)
    sampling = SamplingParams(max_tokens=1, temperature=0, prompt_logprobs=0, detokenize=False)
    outputs = llm.generate([{"prompt_token_ids": ids} for ids in prompts], sampling, use_tqdm=False)
    found = [
        told[token].logprob
        for ids, output in zip(prompts, outputs, strict=True)
        for token, told in zip(ids[1:], output.prompt_logprobs[1:], strict=True)
    ]
    return {"logprobs": found, "steps": {name: count - before[name] for name, count in _steps(llm).items()}}


def _steps(llm: Any) -> dict[str, int]:
    found: dict[str, int] = llm.collective_rpc("gearshift_shift_state")[0]["steps"]
    return found


def main() -> None:
    """Entry point."""
    from vllm import LLM  # noqa: PLC0415

    scoring = Scoring.model_validate_json(sys.argv[1])
    llm = LLM(**engine_arguments(scoring))
    ids = llm.get_tokenizer().encode(scoring.text)
    prompts = windows(list(ids), scoring.window_tokens, scoring.windows)
    Path(sys.argv[2]).write_text(json.dumps({tree: score(llm, prompts, tree) for tree in TREES}))


if __name__ == "__main__":
    main()
