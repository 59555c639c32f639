# SPDX-License-Identifier: Apache-2.0
"""Starting, signalling and reaping of child processes.

The host reaps with ``waitpid(-1)``, since orphans of its engines become its own children (PID 1, or subreaper). So it
starts processes by `subprocess.Popen` and never lets asyncio or Popen wait for them.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Final

from gearshift.api.host import ProcessSpec

_PR_SET_CHILD_SUBREAPER: Final = 36


class BadSpecError(Exception):
    """A spec that can't be started; ``field`` says which part of it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


def become_subreaper() -> None:
    """Have orphans below this process become its children, as they do for PID 1.

    Raises:
        OSError: the kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(number)}")


def resolve(command: str, env: dict[str, str]) -> str:
    """Path of the program ``command``; a bare ``python`` or ``python3`` is the interpreter that runs the host.

    Raises:
        BadSpecError: no such program.
    """
    if command in {"python", "python3"}:
        return sys.executable
    found = shutil.which(command, path=env.get("PATH"))
    if found is None:
        raise BadSpecError("argv[0]", f"{command!r} is not an executable file" + ("" if "/" in command else " on PATH"))
    return found


def spawn(spec: ProcessSpec, environment: dict[str, str]) -> tuple[int, IO[bytes]]:
    """Start ``spec`` as leader of its own session and process group.

    Returns:
        Its pid and the stream of what it prints (stdout and stderr together).

    Raises:
        BadSpecError: it can't be started.
    """
    env = {**environment, **spec.env}
    _check(spec)
    program = resolve(spec.argv[0], env)
    try:
        child = subprocess.Popen(
            spec.argv,
            executable=program,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise BadSpecError("argv", f"{program} can't be started: {error.strerror}") from error
    assert child.stdout is not None
    child.returncode = 0  # reap() is the one that waits; Popen must not warn about a child that it thinks still runs
    return child.pid, child.stdout


def _check(spec: ProcessSpec) -> None:
    for index, word in enumerate(spec.argv):
        if "\0" in word or (index == 0 and not word):
            raise BadSpecError(f"argv[{index}]", f"{word!r} is empty or holds a NUL")
    for name, value in spec.env.items():
        if not name or "=" in name or "\0" in name + value:
            raise BadSpecError(f"env[{name!r}]", "a name must not be empty or hold '=', and neither side a NUL")


def reap() -> Iterator[tuple[int, int]]:
    """Collect every child that has ended.

    Yields:
        Its pid and its exit code, negative when a signal killed it.
    """
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def signal_group(leader: int, number: signal.Signals) -> None:
    """Signal the process group of an engine; harmless when it has ended."""
    with suppress(ProcessLookupError):
        os.killpg(leader, number)


def kill(pids: list[int]) -> None:
    """SIGKILL; harmless for those that have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
