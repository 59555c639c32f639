# SPDX-License-Identifier: Apache-2.0
"""Run one command to its end, and say clearly what failed: the one place that starts short-lived programs."""

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gscluster.errors import ClusterError

Argument = str | Path


def run(
    argv: Sequence[Argument],
    *,
    stdin: str | None = None,
    timeout_seconds: float = 60,
    env: Mapping[str, str] | None = None,
) -> str:
    """Return the standard output of `argv`; raise ClusterError with its error output when it fails or takes too
    long."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words, input=stdin, capture_output=True, text=True, timeout=timeout_seconds, env=env, check=False
        )
    except FileNotFoundError as error:
        raise ClusterError(f"program {words[0]!r} is not installed (wanted for: {shlex.join(words)})") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"no end after {timeout_seconds:g} s: {shlex.join(words)}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise ClusterError(f"exit status {done.returncode}: {shlex.join(words)}\n{said}")
    return done.stdout


def succeeds(argv: Sequence[Argument], *, timeout_seconds: float = 60) -> bool:
    """Say whether `argv` ends with status 0 in time."""
    try:
        run(argv, timeout_seconds=timeout_seconds)
    except ClusterError:
        return False
    return True
