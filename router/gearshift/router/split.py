# SPDX-License-Identifier: Apache-2.0
"""The two bodies of a request whose prefill and decode run on different pods, and which requests can be served that
way.
"""

import json
from typing import Any

from gearshift.api.engine import PREFILL_TRANSFER


def splittable(document: dict[str, Any]) -> bool:
    """Whether one KV cache serves the whole request.

    Several prompts or several choices would pull one transferred cache more than once, and log-probabilities of the
    prompt exist only where the prompt was computed.
    """
    if document.get("n") not in (None, 1) or document.get("best_of") not in (None, 1):
        return False
    if document.get("echo") or document.get("prompt_logprobs") is not None or document.get("use_beam_search"):
        return False
    return single_prompt(document.get("prompt"))


def single_prompt(prompt: Any) -> bool:
    """Whether a ``prompt`` of ``/v1/completions`` is one prompt: absent (chat), a text, or a list of token ids."""
    if not isinstance(prompt, list):
        return True
    return len(prompt) == 1 or (len(prompt) > 1 and isinstance(prompt[0], int))


def prefill_body(document: dict[str, Any]) -> bytes:
    """Body of step one: the same request, cut to one token that nobody reads, whose KV cache is kept for the decode
    pod.
    """
    body = {key: value for key, value in document.items() if key != "stream_options"}
    body.update(stream=False, max_tokens=1, kv_transfer_params=PREFILL_TRANSFER)
    if "max_completion_tokens" in body:
        body["max_completion_tokens"] = 1
    if body.get("min_tokens"):
        body["min_tokens"] = 1
    return json.dumps(body).encode()


def decode_body(document: dict[str, Any], transfer: dict[str, Any]) -> bytes:
    """Body of step two: the client's request with the place of its KV cache."""
    return json.dumps({**document, "kv_transfer_params": transfer}).encode()


def transfer_params(answer: bytes) -> dict[str, Any] | None:
    """``kv_transfer_params`` of the answer of step one; None when the engine kept nothing (a prompt shorter than one
    block).

    Raises:
        ValueError: the answer is not that of a completion.
    """
    document = json.loads(answer)
    if not isinstance(document, dict):
        raise ValueError("the answer of the prefill pod is not a JSON object")
    transfer = document.get("kv_transfer_params")
    if transfer is not None and not isinstance(transfer, dict):
        raise ValueError("kv_transfer_params of the prefill pod is not a JSON object")
    return transfer or None
