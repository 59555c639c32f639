# SPDX-License-Identifier: Apache-2.0
"""The plugin in a real vLLM server: what it says is what the scheduler holds and does."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.vllm.engines import Client, Engine, prompt, until
from tests.vllm.streams import ENDLESS, LONG, streams


def test_a_fresh_engine_says_what_it_is(engine: Engine) -> None:
    state = engine.client.state()
    assert (state["layout"], state["layouts"], state["role"], state["epoch"]) == ("TP", ["TP"], "Unified", 0)
    assert (state["ranks"], state["worldSize"], state["paused"]) == (1, 1, False)
    assert (state["running"], state["waiting"]) == (0, 0)
    assert state["knobs"]["maxNumSeqs"] > 1


def test_the_tiny_model_says_something_varied(engine: Engine) -> None:
    tokens = engine.client.tokens(prompt(1), 64)
    assert len(set(tokens)) > 32
    assert tokens != engine.client.tokens(prompt(2), 64)
    question = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 32, "seed": 1}
    status, answer = engine.client.call("POST", "/v1/chat/completions", {"model": "tiny", **question})
    assert status == 200, answer
    assert len(answer["choices"][0]["message"]["content"]) > 8


def test_pausing_in_the_middle_of_an_answer_changes_no_token(engine: Engine) -> None:
    client = engine.client
    reference = client.tokens(prompt(3), LONG)
    with streams(client, [prompt(3)], LONG) as (stream,):
        stream.begun()
        assert client.order("POST", "pause", {})["paused"] is True
        made = client.metric("vllm:generation_tokens_total")
        for _ in range(50):
            assert client.state()["running"] == 1
        assert client.metric("vllm:generation_tokens_total") == made
        assert not stream.done()
        assert client.order("POST", "resume")["paused"] is False
        assert stream.tokens() == reference


def test_what_arrives_while_paused_is_answered_afterwards(engine: Engine) -> None:
    client = engine.client
    client.order("POST", "pause", {})
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.tokens, prompt(4), 8)
        until(lambda: client.state()["waiting"] == 1)
        client.order("POST", "resume")
        assert len(answer.result()) == 8


def test_the_token_budget_of_a_role_bounds_the_steps(engine: Engine) -> None:
    client = engine.client
    state = client.order("POST", "role", {"role": "Prefill", "epoch": 3, "knobs": {"maxNumBatchedTokens": 1}})
    assert (state["role"], state["epoch"], state["knobs"]["maxNumBatchedTokens"]) == ("Prefill", 3, 1)
    with streams(client, [prompt(6, 4000)], 1) as (stream,):
        until(lambda: client.state()["kvUsage"] > 0)
        first = client.state()["kvUsage"]
        until(lambda: client.state()["kvUsage"] > first)  # each step allocates what it schedules, here a token
        assert not stream.done()


def test_the_batch_limit_of_a_role_holds_requests_back(engine: Engine) -> None:
    client = engine.client
    client.order("POST", "role", {"role": "Decode", "epoch": 4, "knobs": {"maxNumSeqs": 1}})
    with streams(client, [prompt(seed, 40) for seed in (7, 8, 9)], ENDLESS):
        until(lambda: _load(client) == (1, 2))
        client.order("POST", "role", {"role": "Unified", "epoch": 5})
        until(lambda: _load(client) == (3, 0))
    until(lambda: _load(client) == (0, 0))


def test_lowering_the_batch_limit_below_what_runs_harms_nothing(engine: Engine) -> None:
    client = engine.client
    with streams(client, [prompt(seed, 40) for seed in (10, 11, 12)], LONG) as running:
        until(lambda: _load(client)[0] == 3)
        state = client.order("POST", "role", {"role": "Decode", "epoch": 6, "knobs": {"maxNumSeqs": 1}})
        assert state["knobs"]["maxNumSeqs"] == 1
        assert [len(stream.tokens()) for stream in running] == [LONG] * 3


@pytest.mark.parametrize(
    ("route", "body", "reason", "text"),
    [
        ("layout", {"layout": "DP", "epoch": 9}, "NotCapable", "layout: this engine serves TP only, not DP"),
        ("role", {"role": "Boss", "epoch": 9}, "BadRequest", "role: Input should be 'Unified', 'Prefill' or 'Decode'"),
        ("role", {"role": "Prefill"}, "BadRequest", "epoch: Field required"),
        ("role", {"role": "Prefill", "epoch": -1}, "BadRequest", "epoch: Input should be greater than or equal to 0"),
        (
            "role",
            {"role": "Prefill", "epoch": 9, "knobs": {"maxNumSeqs": 10**6}},
            "NotCapable",
            "knobs.maxNumSeqs: 1000000 is above",
        ),
    ],
)
def test_a_bad_order_is_refused_by_name_and_changes_nothing(
    engine: Engine, route: str, body: dict[str, Any], reason: str, text: str
) -> None:
    before = engine.client.state()
    status, answer = engine.client.call("POST", f"/gearshift/v1/{route}", body)
    assert (status, answer["reason"]) == (422, reason)
    assert text in answer["message"]
    assert engine.client.state() == before


def test_the_own_layout_takes_the_epoch(engine: Engine) -> None:
    assert engine.client.order("POST", "layout", {"layout": "TP", "epoch": 8})["epoch"] == 8


def test_a_peer_that_is_not_on_loopback_is_refused(engine: Engine) -> None:
    for method, route in (("GET", "engine"), ("POST", "pause"), ("POST", "resume"), ("POST", "role")):
        status, answer = engine.client.call(method, f"/gearshift/v1/{route}", headers={"X-Forwarded-For": "10.1.2.3"})
        assert (status, answer["reason"]) == (403, "Forbidden")
    assert engine.client.state()["paused"] is False


def _load(client: Client) -> tuple[int, int]:
    state = client.state()
    return state["running"], state["waiting"]
