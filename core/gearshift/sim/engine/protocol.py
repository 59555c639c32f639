# SPDX-License-Identifier: Apache-2.0
"""Bodies of the OpenAI routes: parsed, checked and turned into one `Job` whatever the route."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gearshift.sim.engine.errors import ApiError, unknown_model
from gearshift.sim.engine.requests import FinishReason
from gearshift.sim.engine.tokens import digest_of, encode, find_stop, natural_tokens

TokenId = Annotated[int, Field(ge=0, lt=1 << 32)]
DEFAULT_COMPLETION_TOKENS = 16
_BodyT = TypeVar("_BodyT", bound="_Body")


class _Body(BaseModel):
    """Fields of both routes. Sampling parameters change nothing: the output depends on the prompt alone."""

    model_config = ConfigDict(extra="ignore")

    model: str | None = None
    max_tokens: int | None = None
    min_tokens: int = Field(default=0, ge=0)
    stop: str | list[str] | None = None
    ignore_eos: bool = False
    stream: bool = False
    stream_options: "StreamOptions | None" = None
    n: int | None = 1
    return_token_ids: bool | None = None
    logprobs: int | None = None
    kv_transfer_params: dict[str, Any] | None = None


class StreamOptions(BaseModel):
    """What a stream carries besides text."""

    include_usage: bool = False
    continuous_usage_stats: bool = False


class CompletionBody(_Body):
    """``POST /v1/completions``."""

    prompt: str | list[TokenId] | list[str] | list[list[TokenId]]
    max_tokens: int | None = DEFAULT_COMPLETION_TOKENS
    echo: bool = False


class TextPart(BaseModel):
    """A part of a message."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """A message of a conversation."""

    role: str
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """Content without its parts' borders."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class ChatBody(_Body):
    """``POST /v1/chat/completions``."""

    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One generation, ready for the engine."""

    chat: bool
    prompt: list[int]
    digest: bytes
    max_tokens: int
    output_tokens: int
    finish_reason: FinishReason
    stop_reason: str | None
    stream: bool
    include_usage: bool
    continuous_usage: bool
    return_token_ids: bool
    kv_transfer_params: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Limits:
    """What the served model accepts."""

    model: str
    max_model_len_tokens: int


def parse_completion(raw: bytes, limits: Limits) -> Job:
    """Job of the body of ``POST /v1/completions``.

    Raises:
        ApiError: the body is not one that this engine can serve.
    """
    body = _validate(CompletionBody, raw, limits)
    if body.echo:
        raise ApiError("echo is not supported by the simulated engine.", param="echo")
    return _job(body, _completion_prompt(body), body.max_tokens, limits, chat=False)


def parse_chat(raw: bytes, limits: Limits) -> Job:
    """Job of the body of ``POST /v1/chat/completions``.

    Raises:
        ApiError: the body is not one that this engine can serve.
    """
    body = _validate(ChatBody, raw, limits)
    text = "".join(f"<|{message.role}|>\n{message.text}\n" for message in body.messages) + "<|assistant|>\n"
    max_tokens = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    return _job(body, encode(text), max_tokens, limits, chat=True)


def _completion_prompt(body: CompletionBody) -> list[int]:
    prompt = body.prompt
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        if len(prompt) > 1:
            raise ApiError(
                f"{len(prompt)} prompts in one request are not supported by the simulated engine.", param="prompt"
            )
        prompt = prompt[0]
    ids = encode(prompt) if isinstance(prompt, str) else [token for token in prompt if isinstance(token, int)]
    if not ids:
        raise ApiError("The prompt is empty.", param="prompt")
    return ids


def _validate(kind: type[_BodyT], raw: bytes, limits: Limits) -> _BodyT:
    try:
        body = kind.model_validate(json.loads(raw))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ApiError(f"The body is not JSON: {error}") from None
    except ValidationError as error:
        raise _invalid(error) from None
    if body.model is not None and body.model != limits.model:
        raise unknown_model(body.model)
    if body.n is not None and body.n != 1:
        raise ApiError(f"n={body.n} is not supported by the simulated engine, which serves n=1.", param="n")
    if body.logprobs:
        raise ApiError("logprobs are not supported by the simulated engine.", param="logprobs")
    return body


def _invalid(error: ValidationError) -> ApiError:
    first = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "body"
    value = json.dumps(first["input"], default=str)[:200]
    return ApiError(f"{field}: {first['msg']} (value: {value})", param=str(first["loc"][0]) if first["loc"] else None)


def _job(body: _Body, prompt: list[int], max_tokens: int | None, limits: Limits, *, chat: bool) -> Job:
    room = limits.max_model_len_tokens - len(prompt)
    if max_tokens is not None and max_tokens < 1:
        raise ApiError(f"max_tokens must be at least 1, got {max_tokens}.", param="max_tokens")
    wanted = max_tokens or max(1, room)
    if wanted > room:
        raise _too_long(limits, len(prompt), wanted)
    if body.min_tokens > wanted:
        raise ApiError(
            f"min_tokens must be less than or equal to max_tokens={wanted}, got {body.min_tokens}.", param="min_tokens"
        )
    digest = digest_of(limits.model, prompt)
    output_tokens, finish_reason, stop_reason = _end(body, digest, wanted)
    options = body.stream_options or StreamOptions()
    return Job(
        chat=chat,
        prompt=prompt,
        digest=digest,
        max_tokens=wanted,
        output_tokens=output_tokens,
        finish_reason=finish_reason,
        stop_reason=stop_reason,
        stream=body.stream,
        include_usage=options.include_usage,
        continuous_usage=options.include_usage and options.continuous_usage_stats,
        return_token_ids=bool(body.return_token_ids),
        kv_transfer_params=body.kv_transfer_params,
    )


def _end(body: _Body, digest: bytes, max_tokens: int) -> tuple[int, FinishReason, str | None]:
    """Number of output tokens, and why the output ends there."""
    natural = max_tokens + 1 if body.ignore_eos else max(body.min_tokens, natural_tokens(digest))
    end = min(max_tokens, natural)
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    found = find_stop(digest, [stop for stop in stops if stop], body.min_tokens, end) if any(stops) else None
    if found is not None:
        return found[0], "stop", found[1]
    return (natural, "stop", None) if natural <= max_tokens else (max_tokens, "length", None)


def _too_long(limits: Limits, prompt_tokens: int, wanted: int) -> ApiError:
    return ApiError(
        f"This model's maximum context length is {limits.max_model_len_tokens} tokens. However, you requested {wanted}"
        f" output tokens and your prompt contains {prompt_tokens} input tokens, for a total of {prompt_tokens + wanted}"
        " tokens."
        " Please reduce the length of the input prompt or the number of requested output tokens.",
        param="input_tokens",
    )
