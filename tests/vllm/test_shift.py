# SPDX-License-Identifier: Apache-2.0
"""The shift engine in a real vLLM: whatever the threshold, it says what tensor parallelism says."""

import dataclasses
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.vllm.engines import GREEDY, READY_SECONDS, Client, Environment, prompt, start
from tools.tinymodel.make import make
from tools.tinymodel.shape import Shape

BLOCK_TOKENS = 32
BLOCKS = 27  # as many as all prompts of a batch need, so that their answers make some of them wait
SMALL_KV = ["--num-gpu-blocks-override", str(BLOCKS), "--block-size", str(BLOCK_TOKENS), "--max-model-len", "512"]
CHUNKED = ["--max-num-batched-tokens", "128", "--max-num-seqs", "16"]
COMMON = [*SMALL_KV, *CHUNKED, "--enable-prompt-tokens-details"]
ANSWER_TOKENS = 48
LENGTHS = range(20, 240, 40)
LAYOUTS = (("TP", None), ("Shift", 64), ("Shift", 3), ("SP", None))


@dataclass(frozen=True)
class Case:
    """One engine."""

    name: str
    ranks: int
    kv_heads: int
    settings: dict[str, Any] = field(default_factory=dict)
    compiled: bool = False
    experts: int = 0

    def arguments(self) -> list[str]:
        """What makes a server a shift engine, with little KV cache."""
        settings = {"gearshift": {"thresholdTokens": 64, **self.settings}}
        worker = ["--worker-cls", "gearshift.engine.shift.cpu.ShiftWorker", "--additional-config", json.dumps(settings)]
        mode = ["--no-enforce-eager"] if self.compiled else []
        ranks = ["--tensor-parallel-size", str(self.ranks)]
        return [*ranks, *worker, *mode, *COMMON]


SP2 = Case("sp2", ranks=2, kv_heads=4)
CASES = [
    SP2,
    Case("sp2xtp2", ranks=4, kv_heads=1, settings={"sequenceParallelSize": 2}, compiled=True, experts=4),
    Case("sp4", ranks=4, kv_heads=1, settings={"keyValueExchange": "gather", "shareVocabulary": True}),
]


@dataclass(frozen=True)
class Shift:
    """A running shift engine."""

    case: Case
    client: Client
    plain: Client | None = None  # a server without the second tree

    def layout(self, layout: str, threshold: int | None = None) -> dict[str, Any]:
        """Order a layout; the state that was read back."""
        body: dict[str, Any] = {"layout": layout, "epoch": 1}
        if threshold is not None:
            body["shiftThresholdTokens"] = threshold
        state = self.client.order("POST", "layout", body)
        assert (state["layout"], state["ranks"]) == (layout, self.case.ranks)
        return state

    def steps(self) -> dict[str, float]:
        """Engine steps by layout, once the page shows those that the engine counts now."""
        self.client.state()
        time.sleep(1.1)  # the ranks may repeat an answer that is a second old
        self.client.state()
        return {name: series(self.client, f'gearshift_shift_steps_total{{layout="{name}"}}') for name in ("TP", "SP")}


@dataclass(frozen=True)
class Batch:
    """What a batch of prompts got."""

    tokens: list[list[int]]
    mean_nll: list[float]
    preemptions: float


def series(client: Client, name: str) -> float:
    """Value of one series of the metrics page."""
    _, text = client.call("GET", "/metrics")
    (line,) = (line for line in text.splitlines() if line.rpartition(" ")[0] == name)
    return float(str(line).rpartition(" ")[2])


def answer_batch(client: Client, salt: str) -> Batch:
    """All prompts at once, greedy, with the likelihood of their own tokens; no prefix of another salt is reused."""
    prompts = [prompt(seed, length) for seed, length in enumerate(LENGTHS)]
    before = client.metric("vllm:num_preemptions_total")
    body = {"prompt": prompts, "max_tokens": ANSWER_TOKENS, "prompt_logprobs": 0, "cache_salt": salt}
    status, answer = client.call("POST", "/v1/completions", body | GREEDY)
    assert status == 200, answer
    choices = sorted(answer["choices"], key=lambda choice: choice["index"])
    return Batch(
        [choice["token_ids"] for choice in choices],
        [_mean_nll(ids, choice["prompt_logprobs"]) for ids, choice in zip(prompts, choices, strict=True)],
        client.metric("vllm:num_preemptions_total") - before,
    )


def _mean_nll(ids: list[int], found: list[dict[str, Any] | None]) -> float:
    told: list[float] = [entry[str(token)]["logprob"] for token, entry in zip(ids[1:], found[1:], strict=True) if entry]
    assert len(told) == len(ids) - 1
    return -sum(told) / len(told)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def shift(environment: Environment, request: pytest.FixtureRequest) -> Iterator[Shift]:
    """A shift engine; beside the first one a plain engine of as many ranks."""
    case: Case = request.param
    with_model = _with_model(environment, Shape(kv_heads=case.kv_heads, experts=case.experts))
    cores = "|".join(str(rank % 2) for rank in range(case.ranks))
    engines = [start(with_model, case.name, cores, *case.arguments())]
    if case is SP2:
        engines.append(start(with_model, "plain", cores, "--tensor-parallel-size", str(case.ranks), *COMMON))
    try:
        for engine in engines:
            engine.client.wait_ready(engine.process, engine.log)
        yield Shift(case, *(engine.client for engine in engines))
    finally:
        for engine in engines:
            engine.stop()


def _with_model(environment: Environment, shape: Shape) -> Environment:
    folder = environment.scratch / f"tiny-{shape.kv_heads}-{shape.experts}"
    if not folder.exists():
        make(folder, shape, seed=1)
    return dataclasses.replace(environment, model=folder)


def test_every_threshold_says_the_same(shift: Shift) -> None:
    shift.layout("TP")
    reference = answer_batch(shift.plain or shift.client, "reference")
    before = shift.steps()
    for layout, threshold in LAYOUTS:
        shift.layout(layout, threshold)
        batch = answer_batch(shift.client, f"{layout}{threshold}")
        assert batch.tokens == reference.tokens, f"layout {layout}, threshold {threshold}"
        assert batch.mean_nll == pytest.approx(reference.mean_nll, abs=1e-5)
        assert batch.preemptions > 0
        after = shift.steps()
        moved = {name for name in after if after[name] > before[name]}
        assert moved == ({"TP", "SP"} if layout == "Shift" else {layout})
        before = after


@pytest.mark.parametrize(("writer", "reader"), [("TP", "SP"), ("SP", "TP"), ("Shift", "SP")])
def test_a_prefix_of_the_other_tree_is_reused(shift: Shift, writer: str, reader: str) -> None:
    first, longer = prompt(9, 220), prompt(9, 220) + prompt(10, 30)
    shift.layout("TP")
    reference = shift.client.tokens(longer, 24, cache_salt=f"reference {writer} {reader}")
    shift.layout(writer)
    shift.client.tokens(first, 4, cache_salt=f"{writer} {reader}")
    shift.layout(reader)
    answer = shift.client.complete(longer, 24, cache_salt=f"{writer} {reader}")
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 220 // BLOCK_TOKENS * BLOCK_TOKENS
    assert answer["choices"][0]["token_ids"] == reference


ONLY_SP2 = pytest.mark.parametrize("shift", [SP2], indirect=True, ids=["sp2"])


@ONLY_SP2
def test_the_engine_says_which_layouts_it_has(shift: Shift) -> None:
    state = shift.layout("Shift", 96)
    assert state["layouts"] == ["Shift", "TP", "SP"]
    assert (state["shiftThresholdTokens"], state["shiftFloorTokens"], state["worldSize"]) == (96, 0, 2)
    assert state["details"]["sequenceParallelSize"] == "2"
    assert shift.layout("Shift")["shiftThresholdTokens"] == 64, "the one that it was started with"
    assert "shiftThresholdTokens" not in shift.layout("TP")


@ONLY_SP2
def test_the_threshold_changes_under_running_requests(shift: Shift) -> None:
    shift.layout("TP")
    reference = answer_batch(shift.client, "still").tokens
    changes = 0
    with ThreadPoolExecutor(1) as pool:
        while changes <= 8:  # a busy machine answers few orders during one batch
            batch = pool.submit(answer_batch, shift.client, f"changing {changes}")
            while not batch.done():
                shift.layout("Shift", (0, 3, 64, 10**6)[changes % 4])
                changes += 1
            assert batch.result().tokens == reference


@ONLY_SP2
@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        ({"layout": "DP"}, "NotCapable", "layout: this engine serves Shift, TP, SP only, not DP"),
        ({"layout": "TP", "shiftThresholdTokens": 9}, "NotCapable", "only layout Shift has a threshold, not TP"),
        (
            {"layout": "Shift", "shiftThresholdTokens": -1},
            "BadRequest",
            "shiftThresholdTokens: Input should be greater",
        ),
    ],
)
def test_a_wrong_order_changes_nothing(shift: Shift, body: dict[str, Any], reason: str, words: str) -> None:
    shift.layout("Shift", 96)
    status, answer = shift.client.call("POST", "/gearshift/v1/layout", {"epoch": 7, **body})
    assert (status, answer["reason"]) == (422, reason)
    assert words in answer["message"]
    state = shift.client.state()
    assert (state["layout"], state["shiftThresholdTokens"], state["epoch"]) == ("Shift", 96, 1)


@ONLY_SP2
def test_the_page_shows_what_the_ranks_count(shift: Shift) -> None:
    shift.layout("SP")
    before = shift.steps()["SP"]
    sent, tokens = "gearshift_shift_all_to_all_bytes_total", 'gearshift_shift_tokens_total{layout="SP"}'
    earlier = {name: series(shift.client, name) for name in (sent, tokens)}
    shift.client.tokens(prompt(11, 100), 5, cache_salt="page")
    assert shift.steps()["SP"] == before + 5
    assert series(shift.client, tokens) == earlier[tokens] + 100 + 4
    assert series(shift.client, sent) > earlier[sent]
    assert series(shift.client, "gearshift_shift_threshold_tokens") == 0
    assert series(shift.client, 'gearshift_shift_step_seconds_sum{layout="SP"}') > 0
    assert series(shift.client, 'gearshift_shift_start_seconds{phase="load"}') > 0
    weights = {tree: series(shift.client, f'gearshift_shift_weights_bytes{{layout="{tree}"}}') for tree in ("TP", "SP")}
    assert min(weights.values()) > 0


def test_what_cannot_be_sequence_parallel_is_refused_at_start(environment: Environment) -> None:
    engine = start(environment, "alone", "0", *Case("alone", ranks=1, kv_heads=4).arguments())
    try:
        assert engine.process.wait(READY_SECONDS) != 0
    finally:
        engine.stop()
    assert "tensor_parallel_size: 1 rank(s) can't be sequence parallel; at least 2 are needed" in engine.log.read_text()
