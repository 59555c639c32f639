# SPDX-License-Identifier: Apache-2.0
"""Answers and stream chunks of the OpenAI routes, field by field as vLLM writes them.

Chunks are assembled from prepared JSON text, since one is written for each token; `WORDS` needs no escaping.
"""

import json
from typing import Any

from gearshift.sim.engine.protocol import Job
from gearshift.sim.engine.requests import Request
from gearshift.sim.engine.tokens import WORDS, decode, output_ids

DONE = b"data: [DONE]\n\n"


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """Token counts in the order of vLLM's ``UsageInfo``."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


class StreamWriter:
    """Chunks of one stream."""

    def __init__(self, job: Job, request: Request, response_id: str, model: str, created: int) -> None:
        self._job = job
        self._request = request
        kind = "chat.completion.chunk" if job.chat else "text_completion"
        head = {"id": response_id, "object": kind, "created": created, "model": model}
        self._head = "data: " + compact(head)[:-1] + ',"choices":['

    def opening(self) -> bytes:
        """What comes before the first token: the role in a chat, nothing in a completion."""
        if not self._job.chat:
            return b""
        choice = '{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}'
        prompt_ids = compact(self._job.prompt if self._job.return_token_ids else None)
        tail = f'{self._usage(0)},"prompt_token_ids":{prompt_ids},"prompt_text":null}}\n\n'
        return f"{self._head}{choice}]{tail}".encode()

    def tokens(self, start: int, stop: int) -> bytes:
        """One chunk for each of the output tokens from ``start`` to ``stop`` (excluded)."""
        ids = output_ids(self._request.digest, start, stop)
        make = self._chat_choice if self._job.chat else self._completion_choice
        return "".join(
            f"{self._head}{make(token, position)}]{self._usage(position)}}}\n\n"
            for position, token in enumerate(ids, start=start + 1)
        ).encode()

    def closing(self) -> bytes:
        """What comes after the last token."""
        if not self._job.include_usage:
            return DONE
        counts = compact(usage(len(self._job.prompt), self._request.generated_tokens))
        return f'{self._head}],"usage":{counts}}}\n\n'.encode() + DONE

    def _completion_choice(self, token: int, position: int) -> str:
        prompt_ids = self._job.prompt if self._job.return_token_ids and position == 1 else None
        return (
            f'{{"index":0,"text":"{WORDS[token]}","logprobs":null,{self._ending(position, always=True)}'
            f',"prompt_token_ids":{compact(prompt_ids)},"token_ids":{self._ids(token)}}}'
        )

    def _chat_choice(self, token: int, position: int) -> str:
        ending = self._ending(position, always=False)
        delta = f'{{"content":"{WORDS[token]}"}}'
        return f'{{"index":0,"delta":{delta},"logprobs":null,{ending},"token_ids":{self._ids(token)}}}'

    def _ending(self, position: int, *, always: bool) -> str:
        if position < self._job.output_tokens:
            return '"finish_reason":null' + (',"stop_reason":null' if always else "")
        return f'"finish_reason":"{self._job.finish_reason}","stop_reason":{compact(self._job.stop_reason)}'

    def _ids(self, token: int) -> str:
        return f"[{token}]" if self._job.return_token_ids else "null"

    def _usage(self, completion_tokens: int) -> str:
        if not self._job.continuous_usage:
            return ""
        return ',"usage":' + compact(usage(len(self._job.prompt), completion_tokens))


def full_answer(
    job: Job, request: Request, response_id: str, model: str, created: int, kv_transfer_params: dict[str, Any] | None
) -> dict[str, Any]:
    """Body of an answer that is not streamed."""
    ids = output_ids(request.digest, 0, request.generated_tokens)
    choice = _chat_answer(job, ids) if job.chat else _completion_answer(job, ids)
    prompt_ids = job.prompt if job.return_token_ids else None
    answer: dict[str, Any] = {
        "id": response_id,
        "object": "chat.completion" if job.chat else "text_completion",
        "created": created,
        "model": model,
        "choices": [choice],
        "service_tier": None,
        "system_fingerprint": None,
        "usage": {**usage(len(job.prompt), len(ids)), "prompt_tokens_details": None},
    }
    if job.chat:
        answer |= {"prompt_logprobs": None, "prompt_token_ids": prompt_ids, "prompt_text": None}
    return answer | {"kv_transfer_params": kv_transfer_params, "ec_transfer_params": None, "metrics": None}


def _completion_answer(job: Job, ids: list[int]) -> dict[str, Any]:
    return {
        "index": 0,
        "text": decode(ids),
        "logprobs": None,
        "finish_reason": job.finish_reason,
        "stop_reason": job.stop_reason,
        "token_ids": ids if job.return_token_ids else None,
        "prompt_logprobs": None,
        "prompt_token_ids": job.prompt if job.return_token_ids else None,
        "routed_experts": None,
    }


def _chat_answer(job: Job, ids: list[int]) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": decode(ids),
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "reasoning": None,
    }
    return {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": job.finish_reason,
        "stop_reason": job.stop_reason,
        "token_ids": ids if job.return_token_ids else None,
        "routed_experts": None,
    }


def compact(value: Any) -> str:
    """JSON without spaces, as vLLM writes it."""
    return json.dumps(value, separators=(",", ":"))
