# SPDX-License-Identifier: Apache-2.0
"""Options that commands share, and what may be written after them."""

import argparse
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from gearshift.api.base import Duration
from gearshift.cli.errors import UsageError
from gearshift.cli.output import FORMATS

Word = TypeVar("Word", bound=StrEnum)


def add_target(parser: argparse.ArgumentParser) -> None:
    """Which cluster and namespace, before or after the command's name."""
    absent: Any = argparse.SUPPRESS
    parser.add_argument("-n", "--namespace", default=absent, help="namespace; that of the context when left out")
    parser.add_argument("--context", default=absent, help="context of the kubeconfig")
    parser.add_argument("--kubeconfig", default=absent, metavar="FILE", help="kubeconfig; kubectl's when left out")


def add_output(parser: argparse.ArgumentParser) -> None:
    """How the result is printed."""
    parser.add_argument("-o", "--output", choices=FORMATS, help="print JSON or YAML instead of text")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Whether a write is kept."""
    choices = ("none", "server")
    text = "server: the API server checks the change and keeps nothing of it"
    parser.add_argument("--dry-run", choices=choices, default="none", help=text)


def add_wait(parser: argparse.ArgumentParser, what: str) -> None:
    """Whether to follow what was ordered."""
    parser.add_argument("--wait", action="store_true", help=f"follow until {what}")
    text = "longest wait (10m)"
    parser.add_argument("--timeout", type=length, default=600.0, metavar="DURATION", help=text)


def add_expiry(parser: argparse.ArgumentParser, seconds: float, words: str) -> None:
    """Until when an order stands."""
    group = parser.add_mutually_exclusive_group()
    text = f"how long it stands ({words}), such as 90s or 1h30m"
    group.add_argument("--for", dest="seconds", type=length, default=seconds, metavar="DURATION", help=text)
    text = "when it ends, such as 2026-12-01T18:00:00Z"
    group.add_argument("--until", type=moment, metavar="TIME", help=text)


def expiry(arguments: argparse.Namespace, now: datetime) -> datetime:
    """When the order ends, in whole seconds of UTC.

    Raises:
        UsageError: not in the future, or beyond what a calendar holds.
    """
    if arguments.until is not None:
        if arguments.until <= now:
            raise UsageError(f"--until: {arguments.until.isoformat()} is in the past")
        found: datetime = arguments.until.astimezone(UTC)
        return found.replace(microsecond=0)
    try:
        return (now.astimezone(UTC) + timedelta(seconds=arguments.seconds)).replace(microsecond=0)
    except OverflowError:
        raise UsageError(f"--for: {arguments.seconds:.0f} s from now is no date") from None


def length(text: str) -> float:
    """Seconds of a Go-style duration that is at least 1 s.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        seconds = Duration.parse(text).seconds
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from problem
    if seconds < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is shorter than 1s")
    return seconds


def moment(text: str) -> datetime:
    """A time with its zone.

    Raises:
        argparse.ArgumentTypeError: it is none, or names no zone.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-12-01T18:00:00Z") from None
    if found.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} names no time zone; write {text}Z for UTC")
    return found


def word(kind: type[Word], text: str) -> Word:
    """A word of the vocabulary, in upper or lower case.

    Raises:
        argparse.ArgumentTypeError: it is none; names those that there are.
    """
    for member in kind:
        if member.value.lower() == text.lower():
            return member
    known = ", ".join(member.value for member in kind)
    raise argparse.ArgumentTypeError(f"{text!r} is not a {kind.__name__.lower()}; known: {known}")
