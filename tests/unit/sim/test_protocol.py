# SPDX-License-Identifier: Apache-2.0
"""Bodies of the OpenAI routes: what they mean, and how bad ones are refused."""

import json
from typing import Any

import pytest

from gearshift.sim.engine.errors import ApiError
from gearshift.sim.engine.protocol import Job, Limits, parse_chat, parse_completion
from gearshift.sim.engine.tokens import natural_tokens

LIMITS = Limits("m", 1000)


def parse(**fields: Any) -> Job:
    return parse_completion(json.dumps({"model": "m", "prompt": "Hello world", **fields}).encode(), LIMITS)


@pytest.mark.parametrize(
    ("fields", "status", "kind", "param", "message"),
    [
        ({"model": "x"}, 404, "NotFoundError", "model", "The model `x` does not exist."),
        ({"max_tokens": 0}, 400, "BadRequestError", "max_tokens", "max_tokens must be at least 1, got 0."),
        ({"max_tokens": -1}, 400, "BadRequestError", "max_tokens", "max_tokens must be at least 1, got -1."),
        ({"max_tokens": "many"}, 400, "BadRequestError", "max_tokens", '(value: "many")'),
        ({"max_tokens": 999}, 400, "BadRequestError", "input_tokens", "for a total of 1001 tokens"),
        ({"prompt": [1] * 2000}, 400, "BadRequestError", "input_tokens", "contains 2000 input tokens"),
        ({"prompt": ""}, 400, "BadRequestError", "prompt", "The prompt is empty."),
        ({"prompt": []}, 400, "BadRequestError", "prompt", "The prompt is empty."),
        ({"prompt": [-1]}, 400, "BadRequestError", "prompt", "prompt"),
        ({"prompt": None}, 400, "BadRequestError", "prompt", "prompt"),
        ({"prompt": ["a", "b"]}, 400, "BadRequestError", "prompt", "2 prompts"),
        ({"n": 3}, 400, "BadRequestError", "n", "n=3"),
        ({"logprobs": 5}, 400, "BadRequestError", "logprobs", "logprobs"),
        ({"echo": True}, 400, "BadRequestError", "echo", "echo"),
        ({"min_tokens": 20}, 400, "BadRequestError", "min_tokens", "max_tokens=16, got 20"),
    ],
)
def test_bad_bodies_are_refused_in_openai_shape(
    fields: dict[str, Any], status: int, kind: str, param: str, message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        parse(**fields)
    error = caught.value.body["error"]
    assert (error["code"], error["type"], error["param"]) == (status, kind, param)
    assert message in error["message"]


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[]", b"3"])
def test_what_is_no_json_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        parse_completion(raw, LIMITS)
    assert caught.value.status == 400


def test_a_completion_has_vllms_default_length() -> None:
    assert (parse().output_tokens, parse().finish_reason) == (16, "length")


def test_text_and_its_token_ids_are_one_prompt() -> None:
    job = parse()
    assert parse(prompt=job.prompt).digest == job.digest
    assert parse(prompt=[job.prompt]).digest == job.digest
    assert parse(prompt=["Hello world"]).digest == job.digest


def test_a_chat_ends_by_itself_unless_told_to_go_on() -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}
    job = parse_chat(json.dumps(body).encode(), LIMITS)
    assert (job.output_tokens, job.finish_reason, job.stop_reason) == (natural_tokens(job.digest), "stop", None)
    longer = parse_chat(json.dumps({**body, "ignore_eos": True}).encode(), LIMITS)
    assert (longer.output_tokens, longer.finish_reason) == (1000 - len(job.prompt), "length")


def test_the_newer_name_of_max_tokens_wins() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5, "max_completion_tokens": 3}
    assert parse_chat(json.dumps(body).encode(), LIMITS).output_tokens == 3


def test_other_parts_than_text_are_refused() -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}
    with pytest.raises(ApiError, match="messages"):
        parse_chat(json.dumps(body).encode(), LIMITS)


def test_a_stop_string_ends_the_output() -> None:
    job = parse(stop=["a", "e", "i", "o", "u", "y"], max_tokens=50)
    assert (job.output_tokens, job.finish_reason) == (1, "stop")
    assert job.stop_reason in list("aeiouy")
