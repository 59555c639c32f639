# SPDX-License-Identifier: Apache-2.0
"""HTTP over the Unix socket ``names.HOST_SOCKET``: what the sidecar asks of the engine host.

The host is PID 1 of the engine container.

| request | body -> answer |
|---|---|
| ``GET /v1/processes`` | -> `ProcessList` |
| ``PUT /v1/processes/{name}`` | `ProcessSpec` -> `ProcessStatus`; the same spec again is harmless, another one 409 |
| ``POST /v1/processes/{name}/signal`` | `SignalRequest` -> `ProcessStatus`; sent to the whole process group |
| ``GET /v1/events`` | -> newline-delimited `HostEvent`: ``Hello`` at once, one a change, ``Beat`` each second |
| ``POST /v1/shutdown`` | `ShutdownRequest` -> 202; the host stops all processes and exits |

On SIGTERM the host sends ``Terminating`` and waits for ``/v1/shutdown``; it shuts down by itself when no sidecar is
connected or ``grace_seconds`` of its command line have passed.
"""

from typing import Literal

from pydantic import Field

from gearshift.api.base import TolerantModel


class ProcessSpec(TolerantModel):
    """One engine process."""

    argv: list[str] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)  # added to the container's environment


class ProcessStatus(TolerantModel):
    """State of one engine process."""

    name: str
    pid: int
    state: Literal["Running", "Exited"]
    exit_code: int | None = None  # negative: killed by that signal
    started_at: float
    spec: ProcessSpec
    log_tail: list[str] = Field(default_factory=list)  # last lines, newest last, at most 50


class ProcessList(TolerantModel):
    """All processes that the host has started and not forgotten."""

    processes: list[ProcessStatus]
    terminating: bool


class SignalRequest(TolerantModel):
    """A signal for a process group."""

    signal: Literal["SIGTERM", "SIGKILL", "SIGINT"]


class ShutdownRequest(TolerantModel):
    """Stop everything (SIGTERM, then SIGKILL after ``grace_seconds``) and exit."""

    grace_seconds: float = Field(default=10.0, ge=0)


class HostEvent(TolerantModel):
    """One line of the event stream."""

    kind: Literal["Hello", "Beat", "Started", "Exited", "Terminating"]
    process: ProcessStatus | None = None
    grace_seconds: float | None = None  # with Terminating: time left to drain
