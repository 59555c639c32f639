# SPDX-License-Identifier: Apache-2.0
"""What the demo prints: steps with their time, and the commands that a user would type."""

import sys
import time

_BEGIN = time.monotonic()


def title(text: str) -> None:
    """A heading."""
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


def say(text: str) -> None:
    """A line with the time since the start."""
    print(f"[{time.monotonic() - _BEGIN:5.0f} s] {text}", flush=True)


def command(text: str) -> None:
    """A command that is being carried out."""
    print(f"          $ {text}", flush=True)


def block(text: str) -> None:
    """Output of a command, indented."""
    for line in text.rstrip().splitlines():
        print(f"          {line}", flush=True)


def piece(text: str) -> None:
    """A piece of a stream, as it comes."""
    print(text, end="", flush=True)
