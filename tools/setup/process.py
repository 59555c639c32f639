# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a step: output goes to a log, progress to the terminal, a failure shows the end of the log."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from tools.setup.paths import cache

Word: TypeAlias = str | Path
POLL_SECONDS: Final = 0.2
PROGRESS_SECONDS: Final = 15.0
LOG_TAIL_BYTES: Final = 4_000


class SetupError(Exception):
    """A step failed; the message says what to do about it."""


def say(message: str) -> None:
    """Prints one line of progress at once, also when the output is a pipe."""
    print(message, file=sys.stderr, flush=True)


def log_path(name: str) -> Path:
    """The log of a step, made empty-handed if its folder does not exist yet."""
    folder = cache() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.log"


def run(name: str, argv: Sequence[Word], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
    """Runs `argv` with its output appended to the log of step `name`.

    `env` is added to the environment. Raises SetupError with the end of the log when the command fails or is missing.
    """
    log = log_path(name)
    words = [str(word) for word in argv]
    environment = {**os.environ, **(env or {})}
    with log.open("ab") as output:
        output.write(f"\n$ {' '.join(words)}\n".encode())
        output.flush()
        try:
            child = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=cwd,
                close_fds=False,  # the locks of the store go along
            )
        except FileNotFoundError as error:
            raise SetupError(f"{name}: the command {words[0]} is not on this machine") from error
        code = _wait(name, child, log)
    if code != 0:
        raise SetupError(f"{name}: {words[0]} ended with code {code}; log: {log}\n{tail(log)}")


def output_of(argv: Sequence[Word]) -> str | None:
    """The trimmed output of a quick command, or None when it fails or is missing."""
    try:
        done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def tail(log: Path) -> str:
    """The last lines of a log, indented."""
    text = log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
    return "\n".join(f"    {line}" for line in text.splitlines()[-30:])


def _wait(name: str, child: subprocess.Popen[bytes], log: Path) -> int:
    """Waits for the child and says from time to time that it still works; an interrupted wait ends the child."""
    started = shown = time.monotonic()
    try:
        while (code := child.poll()) is None:
            time.sleep(POLL_SECONDS)
            if time.monotonic() - shown >= PROGRESS_SECONDS:
                shown = time.monotonic()
                say(f"  {name}: {shown - started:.0f} s, {_last_line(log)}")
    except BaseException:
        child.terminate()
        child.wait()
        raise
    return code


def _last_line(log: Path) -> str:
    lines = log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace").split("\n")
    words = [line.split("\r")[-1].strip() for line in lines]
    return next((line[:100] for line in reversed(words) if line), "starting")
