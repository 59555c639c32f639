# SPDX-License-Identifier: Apache-2.0
"""The page on `kubectl gearshift` names every command and option that there is, and shows only those."""

import argparse
import re
from pathlib import Path

import pytest

from gearshift.cli import kubectl

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/cli.md").read_text()
SHOWN = re.findall(r"^\$ kubectl gearshift (.+)$", PAGE, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def commands() -> dict[str, argparse.ArgumentParser]:
    parsers = argparse.ArgumentParser().add_subparsers()
    kubectl.add_to(parsers)
    return dict(parsers.choices)


def test_every_command_is_in_the_table(commands: dict[str, argparse.ArgumentParser]) -> None:
    assert set(re.findall(r"^\| `(\w+)[ `]", PAGE, flags=re.MULTILINE)) == set(commands)


def test_every_option_is_named(commands: dict[str, argparse.ArgumentParser]) -> None:
    longest = {max(action.option_strings, key=len) for each in commands.values() for action in each._actions[1:]
               if action.option_strings}  # fmt: skip
    told = {"--namespace": "-n", "--output": "-o", "--all-namespaces": "-A"}
    assert [option for option in sorted(longest) if f"`{told.get(option, option)}" not in PAGE] == ["--reason"]
    assert "[--reason TEXT]" in PAGE


@pytest.mark.parametrize("words", SHOWN)
def test_what_is_shown_can_be_written(words: str, commands: dict[str, argparse.ArgumentParser]) -> None:
    command, *rest = words.split()
    commands[command].parse_args(rest)
