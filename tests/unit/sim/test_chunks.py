# SPDX-License-Identifier: Apache-2.0
"""Stream chunks byte for byte as vLLM 0.26 writes them (`model_dump_json` of its response models)."""

import json

import pytest

from gearshift.sim.engine.chunks import StreamWriter, full_answer
from gearshift.sim.engine.protocol import Job, Limits, parse_chat, parse_completion
from gearshift.sim.engine.requests import Request
from gearshift.sim.engine.tokens import WORDS, output_ids

LIMITS = Limits("m", 4096)


def completion(**fields: object) -> Job:
    return parse_completion(
        json.dumps({"prompt": "Hi there", "max_tokens": 2, "stream": True, **fields}).encode(), LIMITS
    )


def chat(**fields: object) -> Job:
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "stream": True, **fields}
    return parse_chat(json.dumps(body).encode(), LIMITS)


def stream(job: Job) -> list[str]:
    """The chunks of ``job`` with its words written as A and B."""
    request = Request(
        id="r",
        digest=job.digest,
        prompt_tokens=len(job.prompt),
        output_tokens=job.output_tokens,
        finish_reason=job.finish_reason,
        arrived_at=0.0,
    )
    request.generated_tokens = job.output_tokens
    writer = StreamWriter(job, request, "ID", "m", 7)
    text = (writer.opening() + writer.tokens(0, 1) + writer.tokens(1, job.output_tokens) + writer.closing()).decode()
    for token, letter in zip(output_ids(job.digest, 0, 2), "AB", strict=True):
        text = text.replace(f'"{WORDS[token]}"', f'" {letter}"').replace(f"[{token}]", f"[{letter}]")
    return text.split("\n\n")[:-1]


def test_completion_chunks() -> None:
    assert stream(completion()) == [
        (
            'data: {"id":"ID","object":"text_completion","created":7,"model":"m","choices":[{"index":0,"text":" A",'
            '"logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}'
        ),
        (
            'data: {"id":"ID","object":"text_completion","created":7,"model":"m","choices":[{"index":0,"text":" B",'
            '"logprobs":null,"finish_reason":"length","stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}'
        ),
        "data: [DONE]",
    ]


def test_chat_chunks() -> None:
    assert stream(chat()) == [
        (
            'data: {"id":"ID","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,'
            '"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,'
            '"prompt_text":null}'
        ),
        (
            'data: {"id":"ID","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,'
            '"delta":{"content":" A"},"logprobs":null,"finish_reason":null,"token_ids":null}]}'
        ),
        (
            'data: {"id":"ID","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,'
            '"delta":{"content":" B"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]}'
        ),
        "data: [DONE]",
    ]


def test_usage_comes_last_on_request() -> None:
    assert stream(completion(stream_options={"include_usage": True}))[-2:] == [
        (
            'data: {"id":"ID","object":"text_completion","created":7,"model":"m","choices":[],'
            '"usage":{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2}}'
        ),
        "data: [DONE]",
    ]


def test_usage_comes_with_every_chunk_on_request() -> None:
    chunks = stream(chat(stream_options={"include_usage": True, "continuous_usage_stats": True}))
    counts = [json.loads(chunk.removeprefix("data: "))["usage"]["completion_tokens"] for chunk in chunks[:-1]]
    assert counts == [0, 1, 2, 2]


def test_token_ids_come_on_request() -> None:
    first, last, _ = stream(completion(return_token_ids=True, prompt=[5, 6]))
    assert first.endswith('"prompt_token_ids":[5,6],"token_ids":[A]}]}')
    assert last.endswith('"prompt_token_ids":null,"token_ids":[B]}]}')


@pytest.mark.parametrize("make", [completion, chat])
def test_a_full_answer_has_the_streams_text(make: type) -> None:
    job = make(max_tokens=20)
    request = Request(
        id="r", digest=job.digest, prompt_tokens=3, output_tokens=20, finish_reason="length", arrived_at=0.0
    )
    request.generated_tokens = 20
    writer = StreamWriter(job, request, "ID", "m", 7)
    choices = [json.loads(chunk[6:])["choices"][0] for chunk in writer.tokens(0, 20).decode().split("\n\n")[:-1]]
    streamed = "".join(choice["delta"]["content"] if job.chat else choice["text"] for choice in choices)
    answer = full_answer(job, request, "ID", "m", 7, None)
    choice = answer["choices"][0]
    assert (choice["message"]["content"] if job.chat else choice["text"]) == streamed
    assert answer["usage"]["completion_tokens"] == 20
