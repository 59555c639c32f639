# SPDX-License-Identifier: Apache-2.0
"""Sends arrivals at their time, whatever became of those before (open loop), and times every stream."""

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from gearshift.sim.load.arrivals import Arrival

_DONE: Final = b"data: [DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where requests go and within which bounds."""

    url: str  # such as http://127.0.0.1:8080
    model: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 300.0  # of one request
    max_in_flight: int = 2000  # an arrival beyond is not sent and fails as "not-sent"


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of one request. Times are seconds; ``failure`` is "" when the stream came whole.

    Failures: ``refused``, ``timeout``, ``status-NNN``, ``reset`` (connection broke), ``truncated`` (ended without
    ``[DONE]``), ``error-event`` (an error inside the stream), ``short`` (fewer tokens than asked for), ``not-sent``.
    """

    arrival: Arrival
    sent_at: float  # after the start of the load
    failure: str = ""
    message: str = ""
    ttft_seconds: float | None = None
    gaps_seconds: list[float] = field(default_factory=list)  # between stream events that carry tokens
    e2e_seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    text_digest: str = ""  # SHA-256 of the text


async def run_load(
    target: Target, arrivals: Iterable[Arrival], on_outcome: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """Send all arrivals and wait for their ends; outcomes in the order of arrival. Cancelling stops all streams.

    ``arrivals`` may be drawn while it runs: the next one is asked for when the one before has been sent.
    """
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=target.timeout_seconds, sock_connect=10.0)
    started = time.monotonic()
    flying: set[asyncio.Task[Outcome]] = set()
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session, asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[Outcome]] = []
        for arrival in arrivals:
            await asyncio.sleep(max(0.0, started + arrival.at_seconds - time.monotonic()))
            outcome = Outcome(arrival=arrival, sent_at=time.monotonic() - started)
            sending = _send(session, target, outcome) if len(flying) < target.max_in_flight else _not_sent(outcome)
            task = group.create_task(_reported(sending, on_outcome))
            flying.add(task)
            task.add_done_callback(flying.discard)
            tasks.append(task)
    return [task.result() for task in tasks]


async def _reported(sending: Any, on_outcome: Callable[[Outcome], None] | None) -> Outcome:
    outcome: Outcome = await sending
    if on_outcome is not None:
        on_outcome(outcome)
    return outcome


async def _not_sent(outcome: Outcome) -> Outcome:
    outcome.failure = "not-sent"
    return outcome


async def _send(session: aiohttp.ClientSession, target: Target, outcome: Outcome) -> Outcome:
    arrival, started = outcome.arrival, time.monotonic()
    body = {
        "model": target.model,
        "prompt": arrival.prompt(),
        "max_tokens": arrival.output_tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    try:
        async with session.post(f"{target.url}/v1/completions", json=body, headers=target.headers) as response:
            if response.status != 200:
                outcome.failure, outcome.message = f"status-{response.status}", (await response.text())[:500]
            else:
                await _read_stream(response, outcome, started)
    except aiohttp.ClientConnectorError as error:
        outcome.failure, outcome.message = "refused", str(error)
    except TimeoutError as error:
        outcome.failure, outcome.message = "timeout", str(error)
    except aiohttp.ClientError as error:
        outcome.failure, outcome.message = "reset", str(error)
    outcome.e2e_seconds = time.monotonic() - started
    return outcome


async def _read_stream(response: aiohttp.ClientResponse, outcome: Outcome, started: float) -> None:
    digest, last, ended = hashlib.sha256(), started, False
    async for line in _lines(response):
        if line == _DONE:
            ended = True
            continue
        chunk = json.loads(line.removeprefix(b"data: "))
        if "error" in chunk:
            outcome.failure, outcome.message = "error-event", line.decode()[:500]
            return
        if chunk.get("usage"):
            outcome.prompt_tokens = chunk["usage"]["prompt_tokens"]
            outcome.completion_tokens = chunk["usage"]["completion_tokens"]
        if chunk["choices"]:
            digest.update(chunk["choices"][0]["text"].encode())
            now = time.monotonic()
            if outcome.ttft_seconds is None:
                outcome.ttft_seconds = now - started
            else:
                outcome.gaps_seconds.append(now - last)
            last = now
    outcome.text_digest = digest.hexdigest()
    if not ended:
        outcome.failure, outcome.message = "truncated", "the stream ended without [DONE]"
    elif outcome.completion_tokens < outcome.arrival.output_tokens:
        outcome.failure = "short"
        outcome.message = f"{outcome.completion_tokens} of {outcome.arrival.output_tokens} tokens came"


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Lines that carry data; a broken connection ends them, which the missing ``[DONE]`` shows."""
    with contextlib.suppress(aiohttp.ClientPayloadError):
        async for line in response.content:
            if line.startswith(b"data: "):
                yield line.rstrip()
